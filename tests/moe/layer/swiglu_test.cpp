// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/moe/layer/swiglu.hpp>

#include <gshard/exec/program/executable.hpp>
#include <gshard/core/grad/differentiate.hpp>
#include <gshard/eager/reshard.hpp>
#include <gshard/testing/check_shardings.hpp>
#include <gshard/core/trace/einsum.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <tuple>
#include <vector>

namespace gs = gshard;

TEST_CASE("swiglu: with every sharding as on one device; its gradients are central differences") {
  const auto model = [](auto&, auto gate, auto x) { return gs::nn::swiglu(gate, x); };
  CHECK(gs::check_shardings(model, {"AB", "AB"}, {.sizes = {{{'A', 4}, {'B', 6}}, {{'A', 5}, {'B', 3}}}}) == "");
}

TEST_CASE("swiglu: values equal the formula, and large gates have finite values and gradients") {
  constexpr auto with_gradients = [](auto&, auto gate, auto x) {
    const auto y = gs::nn::swiglu(gate, x);
    const auto d = gs::gradients(gs::sum(y), std::array{gate, x});
    return std::tuple{y, d[0], d[1]};
  };
  using mesh = gs::mesh<gs::axis<"data">>;
  using program = gs::program<with_gradients, mesh, gs::in<"A">, gs::in<"A">>;
  const std::vector<float> gate{-3000, -90, -4, -1, 0, 1, 4, 90, 3000}, x{1, -2, 3, -4, 5, -6, 7, -8, 9};
  gs::executable<program> run(gs::on_one_device<mesh>(), {{'A', 9}});
  const auto [y, of_gate, of_x] = run(gate, x);
  const std::vector<float> value = gs::to_global(y), first = gs::to_global(of_gate), second = gs::to_global(of_x);
  for (std::size_t i = 0; i < gate.size(); ++i) {
    CAPTURE(gate[i]);
    const double g = double(gate[i]), s = 1 / (1 + std::exp(-g));
    CHECK(double(value[i]) == doctest::Approx(g * s * double(x[i])).epsilon(1e-5));
    CHECK(double(first[i]) == doctest::Approx((s + g * s * (1 - s)) * double(x[i])).epsilon(1e-5));
    CHECK(double(second[i]) == doctest::Approx(g * s).epsilon(1e-5));
  }
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Ring attention and its gradients, compared with attention on one device.
#include <gshard/exec/program/executable.hpp>
#include <gshard/core/grad/differentiate.hpp>
#include <gshard/models/ring_attention.hpp>
#include <gshard/eager/reshard.hpp>
#include <gshard/core/program/program.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <tuple>
#include <vector>

namespace ring {

namespace gs = gshard;
using gs::in, gs::none, gs::P;

using mesh = gs::mesh<gs::axis<"seq", 4>>;
using wide_mesh = gs::mesh<gs::axis<"seq", 2>, gs::axis<"model", 2>>;
using one_device = gs::mesh<gs::axis<"seq", 1>>;

/// The result, and the gradients of <y, dy>.
constexpr auto with_gradients = [](gs::symbol y, gs::symbol q, gs::symbol k, gs::symbol v, gs::symbol dy) {
  const auto g = gs::gradients(gs::sum(y * dy), std::array{q, k, v});
  return std::tuple{y, g[0], g[1], g[2]};
};
template <bool Causal>
inline constexpr auto whole = [](auto&, auto q, auto k, auto v, auto dy) {
  return with_gradients(gs::attention(q, k, v, {.causal = Causal}), q, k, v, dy);
};
template <bool Causal>
inline constexpr auto in_ring = [](auto&, auto q, auto k, auto v, auto dy) {
  return with_gradients(gs::nn::ring_attention<"seq">(q, k, v, {.causal = Causal}), q, k, v, dy);
};
inline constexpr auto whole_masked = [](auto&, auto q, auto k, auto v, auto dy, auto mask) {
  return with_gradients(gs::attention(q, k, v, {.causal = true, .mask = mask}), q, k, v, dy);
};
inline constexpr auto masked_ring = [](auto&, auto q, auto k, auto v, auto dy, auto mask) {
  return with_gradients(gs::nn::ring_attention<"seq">(q, k, v, {.causal = true, .mask = mask}), q, k, v, dy);
};

template <class Spec>
using tensor_in = in<"BTHD", Spec, double>;
template <auto Model, class Mesh, class Spec, class... Rest>
using program_of =
    gs::program<Model, Mesh, tensor_in<Spec>, tensor_in<Spec>, tensor_in<Spec>, tensor_in<Spec>, Rest..., gs::element<double>>;

using over_seq = P<none, "seq", none, none>;
template <bool Causal>
using one = program_of<whole<Causal>, one_device, P<none, none, none, none>>;
template <bool Causal>
using around = program_of<in_ring<Causal>, mesh, over_seq>;
using masked_one = program_of<whole_masked, one_device, P<none, none, none, none>, in<"BT", P<none, none>, double>>;
using masked_around = program_of<masked_ring, wide_mesh, P<none, "seq", "model", none>, in<"BT", P<none, "seq">, double>>;

constexpr std::size_t B = 2, T = 8, H = 2, D = 3;
inline const gs::dims sizes{{'B', B}, {'T', T}, {'H', H}, {'D', D}};

inline std::vector<double> numbers(double phase) {
  std::vector<double> v(B * T * H * D);
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = std::sin(phase + 1.7 * double(i));
  return v;
}
template <class Results>
std::vector<std::vector<double>> collect(const Results& results) {
  return std::apply([](const auto&... r) { return std::vector{gs::to_global(r)...}; }, results);
}
template <class Program, class Cluster>
std::vector<std::vector<double>> run(const Cluster& on) {
  gs::executable<Program> f(on, sizes);
  return collect(f(numbers(0), numbers(1), numbers(2), numbers(3)));
}
template <class Program, class Cluster>
std::vector<std::vector<double>> run_masked(const Cluster& on) {
  std::vector<double> mask(B * T, 1.0);
  mask[0] = mask[3] = mask[T + 5] = mask[T + 6] = mask[T + 7] = 0;
  gs::executable<Program> f(on, sizes);
  return collect(f(numbers(0), numbers(1), numbers(2), numbers(3), mask));
}
inline void compare(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t r = 0; r < a.size(); ++r)
    for (std::size_t i = 0; i < a[r].size(); ++i) CHECK(a[r][i] == doctest::Approx(b[r][i]).epsilon(1e-11));
}
template <class One, class Around, class Cluster>
void check(const Cluster& on) {
  compare(run<One>(gs::on_one_device<one_device>()), run<Around>(on));
}
template <class One, class Around, class Cluster>
void check_masked(const Cluster& on) {
  compare(run_masked<One>(gs::on_one_device<one_device>()), run_masked<Around>(on));
}

}  // namespace ring

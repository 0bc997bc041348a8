// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/models/rotary.hpp>

#include <gshard/exec/program/executable.hpp>
#include <gshard/eager/reshard.hpp>
#include <gshard/ops/attention/attention.hpp>
#include <gshard/testing/check_shardings.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gs = gshard;

namespace {

constexpr auto rotated = [](auto& m, auto x) { return gs::nn::rotary(x, gs::iota<"T">(m), 1, 100); };

}  // namespace

TEST_CASE("rotary: equals its formula, in pairs of the two halves") {
  using mesh = gs::mesh<gs::axis<"data">>;
  using program = gs::program<rotated, mesh, gs::in<"BTHD", void, double>, gs::element<double>>;
  constexpr std::size_t B = 2, T = 5, H = 3, D = 6;
  std::vector<double> x(B * T * H * D);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(1.7 * double(i));
  gs::executable<program> run(gs::on_one_device<mesh>(), {{'B', B}, {'T', T}, {'H', H}, {'D', D}});
  const std::vector<double> y = gs::to_global(run(x));
  for (std::size_t row = 0; row < B * T * H; ++row)
    for (std::size_t i = 0; i < D / 2; ++i) {
      const double angle = double(row / H % T) * std::pow(100.0, -2.0 * double(i) / double(D));
      const double first = x[row * D + i], second = x[row * D + i + D / 2];
      CHECK(y[row * D + i] == doctest::Approx(first * std::cos(angle) - second * std::sin(angle)).epsilon(1e-12));
      CHECK(y[row * D + i + D / 2] == doctest::Approx(second * std::cos(angle) + first * std::sin(angle)).epsilon(1e-12));
    }
}

TEST_CASE("rotary and rms_norm: with every sharding as on one device; gradients are central differences") {
  CHECK(gs::check_shardings(rotated, {"BTHD"}, {.sizes = {{{'B', 3}, {'T', 4}, {'H', 2}, {'D', 4}}}}) == "");
  const auto normalized = [](auto&, auto x, auto gamma) { return gs::nn::rms_norm(x, gamma); };
  CHECK(gs::check_shardings(normalized, {"ABM", "M"}, {.sizes = {{{'A', 3}, {'B', 4}, {'M', 6}}, {{'A', 2}, {'B', 5}, {'M', 3}}}}) == "");
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/train/adam.hpp>

#include <gshard/exec/program/executable.hpp>
#include <gshard/eager/reshard.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace gs = gshard;
using gs::in, gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"x">>;

namespace {

inline constexpr gs::adam settings{.beta1 = 0.8, .beta2 = 0.9, .epsilon = 1e-3, .weight_decay = 0.05};

/// |x w - y|^2 over a sharded batch, so that the gradient of w is a partial sum.
inline constexpr auto regression = [](auto& m, auto x, auto y, auto rate) {
  auto w = m.param("w", "BC", gs::init::normal(1));
  auto error = gs::einsum<"ab,bc->ac">(x, w) - y;
  auto loss = gs::sum(error * error);
  settings.minimize(m, loss, rate);
  return loss;
};
using step = gs::program<regression, mesh, in<"AB", P<"x", none>, double>, in<"AC", P<"x", none>, double>,
                         in<"", void, double>, gs::element<double>>;
static_assert(step::plan.count(gs::op::adam) == 1);

TEST_CASE("adam: the moments are parameters that are not trained") {
  CHECK(step::plan.find("adam.m.w") != nullptr);
  const gs::parameter* second = step::plan.find("adam.v.w");
  REQUIRE(second != nullptr);
  CHECK(!second->trainable);
}

inline constexpr auto two_parameters = [](auto& m, auto x, auto rate) {
  auto a = m.param("a", "B", gs::init::constant(1)),
       b = m.scope("deep").param("b", "", gs::init::constant(2));
  auto unused = m.param("unused", "B", gs::init::constant(3));
  static_cast<void>(unused);
  auto loss = gs::sum(x * a) * b;
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
using two =
    gs::program<two_parameters, mesh, in<"B", void, double>, in<"", void, double>, gs::element<double>>;

std::vector<double> parameter(const gs::executor& run, std::string_view name) {
  const gs::parameter_store::entry& e = *run.store().find(name);
  const double* data = e.value.as<double>(0);  // w is replicated
  return {data, data + e.value.elements(0)};
}

}  // namespace

TEST_CASE("adam: a training step is the textbook's loop, on any number of devices") {
  constexpr std::size_t A = 7, B = 3, C = 2;
  std::vector<double> x(A * B), y(A * C);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(double(i));
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::cos(3 * double(i));
  for (const int devices : {1, 2, 3}) {
    const auto on = gs::simulate<mesh>(devices);
    gs::executable<step> run(on, {{'A', A}, {'B', B}, {'C', C}}, gs::parameter_store(on, 1));
    std::vector<double> w = parameter(run.executor(), "w"), m(B * C, 0.0), v(B * C, 0.0);
    for (int t = 1; t <= 10; ++t) {
      const double rate = 0.01 * t;
      std::vector<double> g(B * C, 0.0);
      double loss = 0;
      for (std::size_t i = 0; i < A; ++i)
        for (std::size_t k = 0; k < C; ++k) {
          double error = -y[i * C + k];
          for (std::size_t j = 0; j < B; ++j) error += x[i * B + j] * w[j * C + k];
          loss += error * error;
          for (std::size_t j = 0; j < B; ++j) g[j * C + k] += 2 * error * x[i * B + j];
        }
      for (std::size_t i = 0; i < w.size(); ++i) {
        m[i] = settings.beta1 * m[i] + (1 - settings.beta1) * g[i];
        v[i] = settings.beta2 * v[i] + (1 - settings.beta2) * g[i] * g[i];
        const double mean = m[i] / (1 - std::pow(settings.beta1, t)),
                     square = v[i] / (1 - std::pow(settings.beta2, t));
        w[i] -= rate * (mean / (std::sqrt(square) + settings.epsilon) + settings.weight_decay * w[i]);
      }
      CHECK(run(x, y, std::vector{rate}).item() == doctest::Approx(loss).epsilon(1e-12));
      const std::vector<double> found = parameter(run.executor(), "w");
      for (std::size_t i = 0; i < w.size(); ++i) CHECK(found[i] == doctest::Approx(w[i]).epsilon(1e-11));
    }
  }
}

TEST_CASE("adam moves every trainable parameter, those without a gradient not at all") {
  const auto on = gs::simulate<mesh>(2);
  gs::executable<two> run(on, {{'B', 3}});
  CHECK(run(std::vector<double>{1, 2, 3}, std::vector{0.1}).item() == 12);
  // The first step of Adam is the rate, against the gradient's sign.
  for (const double v : parameter(run.executor(), "a")) CHECK(v == doctest::Approx(0.9).epsilon(1e-6));
  CHECK(parameter(run.executor(), "deep.b")[0] == doctest::Approx(1.9).epsilon(1e-6));
  CHECK(parameter(run.executor(), "unused") == std::vector<double>(3, 3.0));
  CHECK(run.executor().store().entries().size() == 9);
}

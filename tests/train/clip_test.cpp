// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/train/clip.hpp>

#include "../exec/planned_program.hpp"

#include <gshard/exec/program/executable.hpp>
#include <gshard/exec/program/parameter_access.hpp>
#include <gshard/eager/reshard.hpp>
#include <gshard/train/adam.hpp>
#include <gshard/core/trace/einsum.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using gs::in, gs::none, gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"x">, gs::axis<"y">>;
/// Gradients that are replicated, sharded, and partial sums.
inline constexpr auto clipped = [](auto&, auto a, auto b, auto c) {
  const auto sums = gs::einsum<"AB->B">(b);
  const auto g = gs::clip_by_global_norm(std::array<gs::symbol, 3>{a, sums, c}, 2);
  return std::tuple{g[0], g[1], g[2]};
};
using program = gs::program<clipped, mesh, in<"A", P<none>, double>, in<"AB", P<"x", none>, double>, in<"AB", P<"y", none>, double>>;
static_assert(program::plan.count(op::all_reduce) == 2);  // the sums over A, and the norm

template <int How>
inline constexpr auto trained = [](auto& m, auto x, auto rate) {
  auto w = m.param("w", "BC", gs::init::normal(1));
  auto y = gs::einsum<"AB,BC->AC">(x, w) + m.param("bias", "C", gs::init::constant(0.5));
  auto loss = gs::sum(y * y);
  const auto decays = [](std::string_view name, int dims) { return dims > 1 && name != "bias"; };
  if (How == 0) gs::adam{.epsilon = 1e-3, .weight_decay = 0.1, .clip_norm = 0.5, .decays = decays}.minimize(m, loss, rate);
  else gs::adam{.epsilon = 1e-3, .weight_decay = 0.1, .clip_norm = 0.5, .decays = decays, .shard_state_over = "x"}.minimize(m, loss, rate);
  return loss;
};
template <int How>
using training = gs::program<trained<How>, mesh, in<"AB", P<"x", none>, double>, in<"", void, double>, gs::element<double>>;

}  // namespace

TEST_CASE("clip_by_global_norm: equal to the formula on all meshes, whatever the sharding of the gradients") {
  for (const double size : {0.1, 3.0}) {
    std::vector<double> a(5), b(15), c(15), sums(3, 0.0);
    for (std::size_t i = 0; i < 15; ++i) b[i] = size * std::sin(double(i)), c[i] = size * std::cos(double(i));
    for (std::size_t i = 0; i < 5; ++i) a[i] = size * double(i);
    for (std::size_t i = 0; i < 15; ++i) sums[i % 3] += b[i];
    double square = 0;
    for (const std::vector<double>* g : {&a, &sums, &c})
      for (const double v : *g) square += v * v;
    const double factor = std::min(1.0, 2 / std::sqrt(square));
    for (const auto& [x, y] : {std::pair{1, 1}, std::pair{2, 1}, std::pair{2, 2}, std::pair{3, 2}}) {
      gs::executable<program> run(gs::simulate<mesh>({x, y}), {{'A', 5}, {'B', 3}});
      const auto [p, q, r] = run(a, b, c);
      const auto check = [&](const std::vector<double>& found, const std::vector<double>& given) {
        for (std::size_t i = 0; i < given.size(); ++i) CHECK(found[i] == doctest::Approx(factor * given[i]).epsilon(1e-13));
      };
      check(gs::to_global(p), a);
      check(gs::to_global(q), sums);
      check(gs::to_global(r), c);
    }
  }
}

TEST_CASE("adam with clipping, a mask of decay and sharded state is the textbook's loop") {
  constexpr std::size_t A = 4, B = 3, C = 2;
  std::vector<double> x(A * B);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(double(i));
  const auto check = [&]<int How>(int devices) {
    planned::executable<training<How>> run(gs::simulate<mesh>({devices, 2}), {{'A', A}, {'B', B}, {'C', C}});
    const gs::parameter_store& store = run.executor().store();
    std::vector<double> p = gs::to_global<double>(store, "w");  // and the bias
    p.resize(B * C + C, 0.5);
    std::vector<double> m(p.size(), 0.0), v(p.size(), 0.0);
    for (int t = 1; t <= 5; ++t) {
      std::vector<double> g(p.size(), 0.0);
      double square = 0;
      for (std::size_t i = 0; i < A; ++i)
        for (std::size_t k = 0; k < C; ++k) {
          double y = p[B * C + k];
          for (std::size_t j = 0; j < B; ++j) y += x[i * B + j] * p[j * C + k];
          for (std::size_t j = 0; j < B; ++j) g[j * C + k] += 2 * y * x[i * B + j];
          g[B * C + k] += 2 * y;
        }
      for (const double d : g) square += d * d;
      for (std::size_t i = 0; i < p.size(); ++i) {
        const double d = g[i] * std::min(1.0, 0.5 / std::sqrt(square));
        m[i] = 0.9 * m[i] + 0.1 * d;
        v[i] = 0.98 * v[i] + 0.02 * d * d;
        const double decay = i < B * C ? 0.1 * p[i] : 0;
        p[i] -= 0.01 * (m[i] / (1 - std::pow(0.9, t)) / (std::sqrt(v[i] / (1 - std::pow(0.98, t))) + 1e-3) + decay);
      }
      run(x, std::vector{0.01});
      std::vector<double> found = gs::to_global<double>(store, "w");
      for (const double b : gs::to_global<double>(store, "bias")) found.push_back(b);
      for (std::size_t i = 0; i < p.size(); ++i) CHECK(found[i] == doctest::Approx(p[i]).epsilon(1e-11));
    }
  };
  for (const int devices : {1, 2, 3}) check.template operator()<0>(devices), check.template operator()<1>(devices);
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The heat equation on a periodic grid. Shifts of a sharded dim exchange the borders of shards, and nothing else.
#include <gshard/gshard.hpp>

#include <cmath>
#include <iostream>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using gs::in;
using mesh = gs::mesh<gs::axis<"x">, gs::axis<"y">>;

// u + 0.2 * (sum of the four neighbors - 4 u)
inline constexpr auto heat_step = [](auto&, auto u) {
  auto neighbors = gs::roll(u, 0, 1) + gs::roll(u, 0, -1) + gs::roll(u, 1, 1) + gs::roll(u, 1, -1);
  return 0.2 * u + 0.2 * neighbors;
};
using heat = gs::program<heat_step, mesh, in<"X@x,Y@y">>;
static_assert(heat::plan.count(op::all_gather) == 0 && heat::plan.count(op::all_reduce) == 0);

int main() {
  constexpr int n = 30;
  gs::executable<heat> run(gs::simulate<mesh>({2, 3}), {{'X', n}, {'Y', n}});
  // A Fourier mode keeps its form: every step multiplies it by the same factor.
  const double angle = 2 * std::acos(-1.0) / n, factor = 0.2 + 0.8 * std::cos(angle);
  std::vector<float> u(n * n);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) u[std::size_t(i * n + j)] = float(std::cos(angle * i) * std::cos(angle * j));
  for (int t = 0; t < 100; ++t) u = gs::to_global(run(u));
  std::cout << "after 100 steps the mode has decayed to " << u[0] << ", as it should: "
            << (std::abs(u[0] - std::pow(factor, 100)) < 1e-4 ? "yes" : "no") << '\n'
            << "a device received " << heat::plan.bytes_received(run.executor().sizes()) << " bytes per step, of " << 4 * n * n / 6 << " that it holds\n";
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The heat equation on a sharded grid. Slices and padding of sharded dims become halo exchanges.
#include <gshard/gshard.hpp>
#include <gshard/report/describe.hpp>

#include <cmath>
#include <iostream>
#include <vector>

namespace gs = gshard;
using gs::in, gs::op, gs::P;
using mesh = gs::mesh<gs::axis<"x">, gs::axis<"y">>;

// The 5-point Laplacian of u, with zeros beyond the border: a convolution with a 3x3 kernel.
inline constexpr auto heat_step = [](auto&, auto u, auto laplacian) {
  auto du = gs::conv<"bXYi,xyio->bXYo">(u, laplacian, {{.low = 1, .high = 1}});
  return u + 0.2 * du;
};
using heat = gs::program<heat_step, mesh, in<"bXYi", P<gs::none, "x", "y", gs::none>>, in<"xyio">>;

// Each device receives the border of its neighbors, and nothing else.
static_assert(heat::plan.count(op::all_gather) == 0 && heat::plan.count(op::all_reduce) == 0);

int main() {
  constexpr int n = 30;
  gs::executable<heat> run(gs::simulate<mesh>({2, 3}), {{'b', 1}, {'X', n}, {'Y', n}, {'i', 1}, {'o', 1}, {'x', 3}, {'y', 3}});
  const std::vector<float> laplacian{0, 1, 0, 1, -4, 1, 0, 1, 0};
  // A mode of the discrete Laplacian decays by the same factor everywhere.
  const double pi = std::acos(-1.0), angle = pi / (n + 1);
  std::vector<float> u(n * n);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) u[std::size_t(i * n + j)] = float(std::sin(angle * (i + 1)) * std::sin(angle * (j + 1)));
  const double factor = 1 + 0.2 * (4 * std::cos(angle) - 4), before = u[n * n / 2];
  for (int t = 0; t < 100; ++t) u = gs::to_global(run(u, laplacian));
  const double ratio = u[n * n / 2] / before, expected = std::pow(factor, 100);
  std::cout << "after 100 steps the mode has decayed as it should: " << (std::abs(ratio / expected - 1) < 1e-4 ? "yes" : "no") << '\n';
}

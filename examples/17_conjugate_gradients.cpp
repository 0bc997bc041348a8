// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Conjugate gradients for Poisson's equation. The loop is part of the program; every device learns at run time when it ends.
//
//   17_conjugate_gradients                4 simulated devices, 2x2
//   mpirun -n 3 17_conjugate_gradients    one device per process
#include <gshard/gshard.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <tuple>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using gs::in;
using mesh = gs::mesh<gs::axis<"x">, gs::axis<"y">>;
using grid = in<"X@x,Y@y", double>;

// (A u)(i, j) = 4 u(i, j) - (the sum of the four neighbors), which are 0 beyond the grid.
inline constexpr auto times_a = [](auto u) {
  return 4.0 * u - gs::pad(u, 0, 1, -1) - gs::pad(u, 0, -1, 1) - gs::pad(u, 1, 1, -1) - gs::pad(u, 1, -1, 1);
};
inline constexpr auto apply = [](auto&, auto u) { return times_a(u); };

// Solves A x = b. Returns x, the norm of b - A x, and the number of iterations.
inline constexpr auto solve = [](auto&, auto b, auto tolerance) {
  constexpr auto dot = [](auto u, auto v) { return gs::einsum<"XY,XY->">(u, v); };
  const auto goes_on = [=](auto, auto, auto, auto square, auto) { return tolerance * tolerance < square; };
  const auto iterate = [=](auto x, auto r, auto p, auto square, auto count) {
    const auto ap = times_a(p);
    const auto alpha = square / dot(p, ap);
    const auto next_r = r - alpha * ap;
    const auto next_square = dot(next_r, next_r);
    return std::tuple(x + alpha * p, next_r, next_r + (next_square / square) * p, next_square, count + 1.0);
  };
  const auto [x, r, p, square, count] = gs::while_loop(goes_on, iterate, 0.0 * b, b, b, dot(b, b), 0.0 * tolerance);
  const auto residual = b - times_a(x);
  return std::tuple(x, gs::map<[](auto v) { return gs::sqrt(v); }>(dot(residual, residual)), count);
};
using operator_a = gs::program<apply, mesh, grid>;
using solver = gs::program<solve, mesh, grid, in<"", double>>;
static_assert(solver::plan.count(op::all_gather) == 0);  // only borders and sums of scalars are sent

void run(const gs::cluster<mesh>& cluster) {
  constexpr int n = 30;
  std::vector<double> known(n * n);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) known[std::size_t(i * n + j)] = std::sin(0.1 * i * j) + 0.01 * i;
  const gs::dims sizes{{'X', n}, {'Y', n}};
  gs::executable<operator_a> multiply(cluster, sizes);
  gs::executable<solver> invert(cluster, sizes);
  const std::vector<double> tolerance{1e-6};
  const auto [x, residual, count] = invert(multiply(known), tolerance);
  const std::vector<double> found = gs::to_global(x);
  double error = 0;
  for (std::size_t i = 0; i < found.size(); ++i) error = std::max(error, std::abs(found[i] - known[i]));
  if (cluster.backend().leader())
    std::printf("%d unknowns: %g iterations, residual %.2e, largest error %.2e\n", n * n, count.item(), residual.item(), error);
}

int main(int argc, char** argv) {
#if GSHARD_HAS_MPI
  MPI_Init(&argc, &argv);
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  run(ranks > 1 ? gs::on_mpi<mesh>(MPI_COMM_WORLD) : gs::simulate<mesh>(4));
  MPI_Finalize();
#else
  static_cast<void>(argc), static_cast<void>(argv);
  run(gs::simulate<mesh>(4));
#endif
}

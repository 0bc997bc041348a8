// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The heat equation twice: with a halo of every shard, written by hand, and with pad, written over the whole plate. The results equal those
// of the serial loop bit by bit.
//
//   16_heat_halo_and_pad                4 simulated devices
//   mpirun -n 3 16_heat_halo_and_pad    one device per process
#include <gshard/gshard.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using gs::in, gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"x">>;
using plate = in<"X@x,Y", double>;

// u / 2 + (the sum of the four neighbors) / 8; beyond the plate it is 0.
inline constexpr auto stencil = [](auto u, auto up, auto down, auto left, auto right) {
  using T = decltype(u);
  return u * T(0.5) + (up + down + left + right) * T(0.125);
};

inline constexpr auto by_halo = [](auto&, auto u) {
  return gs::per_shard<"x", P<"x", none>>([](auto t) {  // [devices, rows of the shard, Y]
    auto wide = gs::halo<"x", 1, 1>(t, 1);              // with a row from the shard above and one from the shard below
    return gs::map<stencil>(t, gs::pad(wide, 1, 0, -2), gs::pad(wide, 1, -2, 0), gs::pad(t, 2, 1, -1), gs::pad(t, 2, -1, 1));
  }, u);
};
inline constexpr auto by_pad = [](auto&, auto u) {  // pad(u, 0, 1, -1): a row of zeros before, one row less behind
  return gs::map<stencil>(u, gs::pad(u, 0, 1, -1), gs::pad(u, 0, -1, 1), gs::pad(u, 1, 1, -1), gs::pad(u, 1, -1, 1));
};
using halo_step = gs::program<by_halo, mesh, plate>;
using pad_step = gs::program<by_pad, mesh, plate>;
static_assert(halo_step::plan.collectives() == 2 && halo_step::plan.count(op::collective_permute) == 2);

constexpr int points = 24, steps = 100;

template <class Program>
std::vector<double> run(const gs::cluster<mesh>& cluster, const std::vector<double>& start) {
  gs::executable<Program> step(cluster, {{'X', points}, {'Y', points}});
  gs::tensor<double, P<"x", none>> u = gs::from_global<double, P<"x", none>>(cluster, {points, points}, start);
  for (int t = 0; t < steps; ++t) u = step(u);
  return gs::to_global(u);
}

std::vector<double> run_serially(std::vector<double> u) {
  const auto at = [&](int i, int j) { return i < 0 || j < 0 || i == points || j == points ? 0.0 : u[std::size_t(i * points + j)]; };
  std::vector<double> v(u.size());
  for (int t = 0; t < steps; ++t, u.swap(v))
    for (int i = 0; i < points; ++i)
      for (int j = 0; j < points; ++j)
        v[std::size_t(i * points + j)] = stencil(at(i, j), at(i - 1, j), at(i + 1, j), at(i, j - 1), at(i, j + 1));
  return u;
}

void compare(const gs::cluster<mesh>& cluster) {
  // A mode of the plate keeps its form: every step multiplies it by the same factor.
  const double angle = std::acos(-1.0) / (points + 1), factor = 0.5 + 0.5 * std::cos(angle);
  std::vector<double> start(points * points);
  for (int i = 0; i < points; ++i)
    for (int j = 0; j < points; ++j) start[std::size_t(i * points + j)] = std::sin(angle * (i + 1)) * std::sin(angle * (j + 1));

  const std::vector<double> serial = run_serially(start), halo = run<halo_step>(cluster, start), pad = run<pad_step>(cluster, start);
  const auto differing = [&](const std::vector<double>& u) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < serial.size(); ++i) count += u[i] != serial[i];
    return count;
  };
  if (!cluster.backend().leader()) return;
  std::printf("after %d steps the mode has decayed to %.10f, exactly %.10f\n", steps, halo[0] / start[0], std::pow(factor, steps));
  std::printf("elements that differ from the serial loop: halo %zu, pad %zu\n", differing(halo), differing(pad));
}

int main(int argc, char** argv) {
#if GSHARD_HAS_MPI
  MPI_Init(&argc, &argv);
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  compare(ranks > 1 ? gs::on_mpi<mesh>(MPI_COMM_WORLD) : gs::simulate<mesh>(4));
  MPI_Finalize();
#else
  static_cast<void>(argc), static_cast<void>(argv);
  compare(gs::simulate<mesh>(4));
#endif
}

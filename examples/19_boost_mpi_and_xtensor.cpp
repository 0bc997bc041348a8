// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A product on a mesh of two axes, with communicators of Boost.MPI and arrays of xtensor: mpirun -n 4 19_boost_mpi_and_xtensor
#include <gshard/cluster/boost_mpi.hpp>
#include <gshard/exec/tensor/xtensor.hpp>
#include <gshard/gshard.hpp>

#include <boost/mpi.hpp>
#include <xtensor/xmath.hpp>

#include <cstdint>
#include <iostream>

namespace gs = gshard;
using gs::P;
using mesh = gs::mesh<gs::axis<"row">, gs::axis<"column">>;  // 2x2 on four ranks
using matrix = gs::tensor<double, P<"row", "column">>;

// Fills the shards of this process by a function of the global indices.
template <class F>
matrix fill(const gs::cluster<mesh>& cluster, std::int64_t rows, std::int64_t columns, F f) {
  matrix m(cluster, {rows, columns});
  gs::for_each_local_shard(m, [&](auto shard) {
    auto block = gs::as_xtensor(shard);  // the shard's memory
    for (std::size_t i = 0; i < block.shape(0); ++i)
      for (std::size_t j = 0; j < block.shape(1); ++j)
        block(i, j) = f(shard.offset(0) + std::int64_t(i), shard.offset(1) + std::int64_t(j));
  });
  return m;
}

int main(int argc, char** argv) {
  const boost::mpi::environment environment(argc, argv);
  const boost::mpi::communicator world;
  const auto cluster = gs::on_mpi<mesh>(world);
  constexpr std::int64_t n = 50, m = 30, l = 40;
  const matrix a = fill(cluster, n, m, [](auto i, auto k) { return double(i + k); });
  const matrix b = fill(cluster, m, l, [](auto k, auto j) { return double(k - j); });
  const matrix c = gs::reshard<P<"row", "column">>(gs::einsum<"IK,KJ->IJ">(a, b));
  const matrix transposed = gs::reshard<P<"row", "column">>(gs::einsum<"IJ->JI">(c));

  // The sum over k of (i + k) (k - j) is sum_2 + (i - j) sum_1 - i j m. These are integers, so the product is exact.
  constexpr std::int64_t sum_1 = m * (m - 1) / 2, sum_2 = (m - 1) * m * (2 * m - 1) / 6;
  const auto formula = [](std::int64_t i, std::int64_t j) { return double(sum_2 + (i - j) * sum_1 - i * j * m); };
  const auto distance = [&](const matrix& x, const matrix& y) {
    const xt::xarray<double> difference = xt::abs(gs::as_xtensor(x.local_shard(0)) - gs::as_xtensor(y.local_shard(0)));
    const double mine = difference.size() > 0 ? xt::amax(difference)() : 0;
    return boost::mpi::all_reduce(world, mine, boost::mpi::maximum<double>());
  };
  const double of_product = distance(c, fill(cluster, n, l, formula));
  const double of_transposed = distance(transposed, fill(cluster, l, n, [&](auto j, auto i) { return formula(i, j); }));
  if (world.rank() == 0) std::cout << "largest error of the product " << of_product << ", of its transpose " << of_transposed << '\n';
}

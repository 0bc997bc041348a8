// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/tensor/mpi_cluster.hpp>

#include <gshard/op/reshard.hpp>

#include "../mpi_world.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace gs = gshard;
using gs::none, gs::P;
using mpi_world::rank, mpi_world::ranks;

TEST_CASE("mpi: a process holds one shard, and the processes together the tensor") {
  const auto on = gs::on_mpi<gs::mesh<gs::axis<"x">>>(MPI_COMM_WORLD);
  CHECK(on.size() == ranks());
  REQUIRE(on.devices().size() == 1);
  CHECK(on.devices()[0] == rank());

  std::vector<float> whole(5 * 7);
  for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = float(i);
  const auto rows = gs::from_global<float, P<"x", none>>(on, {5, 7}, whole);
  CHECK(rows.local_shards() == 1);
  CHECK(gs::to_global(rows) == whole);
  CHECK(gs::to_global(gs::reshard<P<none, "x">>(rows)) == whole);
}

TEST_CASE("mpi: ranks that share memory") {
  const auto on = gs::on_mpi<gs::mesh<gs::axis<"x">>>(MPI_COMM_WORLD, {}, {.shared_memory = true});
  CHECK(on.on().shares_memory());
  std::vector<float> whole(50 * 70);
  for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = float(i);
  const auto rows = gs::from_global<float, P<"x", none>>(on, {50, 70}, whole);
  CHECK(gs::to_global(gs::reshard<P<none, "x">>(rows)) == whole);
}

TEST_CASE("mpi: meshes with several axes, static ones included") {
  const auto on = gs::on_mpi<gs::mesh<gs::axis<"x">, gs::axis<"y">>>(MPI_COMM_WORLD);
  CHECK(on.extent(0) * on.extent(1) == ranks());
  const auto wide = gs::on_mpi<gs::mesh<gs::axis<"x">, gs::axis<"y">>>(MPI_COMM_WORLD, {1, ranks()});
  CHECK(wide.extent(1) == ranks());
  std::vector<double> whole(3 * 4);
  for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = double(i);
  CHECK(gs::to_global(gs::from_global<double, P<"y", "x">>(on, {3, 4}, whole)) == whole);
  using fixed = gs::mesh<gs::axis<"x", 5>>;
  CHECK_THROWS_AS(gs::on_mpi<fixed>(MPI_COMM_WORLD), gs::error);
}

TEST_CASE("mpi: a null communicator is named, with and without extents") {
  CHECK_THROWS_WITH_AS(gs::on_mpi<gs::mesh<gs::axis<"x">>>(MPI_COMM_NULL), "mpi_backend: the communicator is MPI_COMM_NULL", gs::error);
  CHECK_THROWS_WITH_AS(gs::on_mpi<gs::mesh<gs::axis<"x">>>(MPI_COMM_NULL, {1}), "mpi_backend: the communicator is MPI_COMM_NULL",
                       gs::error);
}

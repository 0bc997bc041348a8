// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/cluster/mpi_connection.hpp>

#include "../mpi_world.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <vector>

namespace gs = gshard;
using mpi_world::rank, mpi_world::ranks;

TEST_CASE("mpi_connection: ranks are devices, and have their nodes") {
  const std::vector<int> mesh{ranks()};
  const gs::detail::mpi_connection made = gs::detail::connect(MPI_COMM_WORLD, mesh, {.node_size = 2}, {});
  CHECK(made.world.rank() == rank());
  CHECK((made.waits != nullptr) == (ranks() > 1));
  REQUIRE(int(made.nodes.node.size()) == ranks());
  for (int r = 0; r < ranks(); ++r) CHECK(made.nodes.node[std::size_t(r)] == r / 2);
}

TEST_CASE("mpi_connection: an order of the axes renumbers ranks and nodes") {
  if (ranks() != 4) return;
  const std::vector<int> mesh{2, 2};
  const gs::detail::mpi_connection made = gs::detail::connect(MPI_COMM_WORLD, mesh, {.node_size = 2, .axis_order = {1, 0}}, {});
  CHECK(made.world.rank() == std::vector{0, 2, 1, 3}[std::size_t(rank())]);
  CHECK(made.nodes.node == std::vector{0, 1, 0, 1});
}

TEST_CASE("mpi_connection: a function that throws on one process is an error of all") {
  const std::vector<int> mesh{ranks()};
  const auto fails = [](std::span<const int>) -> std::vector<int> {
    if (rank() == 0) throw gs::error("no order");
    return {0};
  };
  CHECK_THROWS_WITH_AS(gs::detail::connect(MPI_COMM_WORLD, mesh, {.choose_axis_order = fails}, {}), doctest::Contains("no order"),
                       gs::error);
}

TEST_CASE("mpi_connection: ranks take the lowest level of their instruction sets") {
  const std::vector<int> mesh{ranks()};
  const gs::cpu_level own = gs::detail::this_cpu_level();
  CHECK(gs::detail::connect(MPI_COMM_WORLD, mesh, {}, {}).level == own);
  if (rank() == ranks() - 1) ::setenv("GSHARD_CPU_LEVEL", "base", 1);
  CHECK(gs::detail::connect(MPI_COMM_WORLD, mesh, {}, {}).level == gs::cpu_level::base);
  if (rank() == ranks() - 1) ::setenv("GSHARD_CPU_LEVEL", "avx2", 1);
  CHECK_THROWS_WITH_AS(gs::detail::connect(MPI_COMM_WORLD, mesh, {}, {}), doctest::Contains("GSHARD_CPU_LEVEL is base, v3 or v4"), gs::error);
  ::unsetenv("GSHARD_CPU_LEVEL");
}

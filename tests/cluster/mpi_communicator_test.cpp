// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../mpi_world.hpp"

#include <gshard/cluster/mpi_communicator.hpp>

#include <doctest/doctest.h>

#include <string>
#include <utility>

namespace gs = gshard;

TEST_CASE("mpi: a communicator is owned by one object") {
  gs::detail::communicator a = gs::detail::duplicate(MPI_COMM_WORLD);
  CHECK(a.size() == mpi_world::ranks());
  CHECK(a.rank() == mpi_world::rank());
  gs::detail::communicator b = std::move(a);
  CHECK(a.empty());
  CHECK(!b.empty());
  a = std::move(b);
  CHECK(!a.empty());
  CHECK(gs::detail::process_count(MPI_COMM_WORLD) == mpi_world::ranks());
}

TEST_CASE("mpi: errors of MPI are exceptions with its text; wrong communicators are named") {
  const gs::detail::communicator world = gs::detail::duplicate(MPI_COMM_WORLD);
  CHECK_NOTHROW(world.check(MPI_SUCCESS, "MPI_Nothing"));
  CHECK_THROWS_WITH_AS(world.check(MPI_ERR_RANK, "MPI_Send"), doctest::Contains("MPI_Send failed on rank"), gs::error);
  CHECK_THROWS_WITH_AS(gs::detail::check_usable(MPI_COMM_NULL), "mpi_backend: the communicator is MPI_COMM_NULL", gs::error);
}

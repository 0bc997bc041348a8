// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/comm/boost_mpi.hpp>

#include <gshard/tensor/mpi_cluster.hpp>

#include "random_cases.hpp"

#include <boost/mpi/communicator.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace gs = gshard;

namespace {

/// Both see the same device of the same mesh, and receive the same.
void compare(gs::backend& found, gs::backend& expected) {
  CHECK(std::ranges::equal(found.extents(), expected.extents()));
  CHECK(std::ranges::equal(found.devices(), expected.devices()));
  CHECK(found.leader() == expected.leader());
  const std::vector<int> extents(expected.extents().begin(), expected.extents().end());
  for (std::uint32_t axes = 0; axes < cases::n_masks(extents); ++axes)
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      CAPTURE(axes);
      CAPTURE(seed);
      cases::exchange_case x(extents, axes, seed), y = x;
      found.exchange(axes, cases::parts(x, found.devices()));
      expected.exchange(axes, cases::parts(y, expected.devices()));
      CHECK(x.recv == y.recv);
    }
  CHECK(std::ranges::equal(found.sent(), expected.sent()));
}

}  // namespace

TEST_CASE("boost: a backend is the one of the communicator's MPI_Comm") {
  const boost::mpi::communicator world;
  for (int rows = 1; rows <= world.size(); ++rows) {
    if (world.size() % rows != 0) continue;
    gs::mpi_backend found = gs::make_mpi_backend(world, {rows, world.size() / rows});
    gs::mpi_backend expected(MPI_COMM_WORLD, {rows, world.size() / rows});
    compare(found, expected);
  }
}

TEST_CASE("boost: a part of the processes in another order; the communicator may go first") {
  const boost::mpi::communicator world;
  std::optional<boost::mpi::communicator> part = world.split(world.rank() % 2, -world.rank());
  const int size = part->size(), rank = part->rank();
  gs::mpi_backend found = gs::make_mpi_backend(*part, {size});
  gs::mpi_backend expected(*part, {size});
  part.reset();
  CHECK(found.devices()[0] == rank);
  compare(found, expected);
}

TEST_CASE("boost: no communicator, and one of another size") {
  const boost::mpi::communicator world, none(MPI_COMM_NULL, boost::mpi::comm_attach);
  CHECK_THROWS_WITH_AS(gs::make_mpi_backend(none, {1}), "mpi_backend: the communicator is MPI_COMM_NULL",
                       gs::error);
  CHECK_THROWS_AS(gs::make_mpi_backend(world, {world.size() + 1}), gs::error);
}

TEST_CASE("boost: clusters take a communicator as well") {
  const boost::mpi::communicator world;
  const auto on = gs::on_mpi<gs::mesh<gs::axis<"x">, gs::axis<"y">>>(world, {1, world.size()});
  CHECK(on.extent(1) == world.size());
  REQUIRE(on.devices().size() == 1);
  CHECK(on.devices()[0] == world.rank());
  CHECK(gs::on_mpi<gs::mesh<gs::axis<"x">>>(world).size() == world.size());
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/cluster/boost_mpi.hpp>

#include "../exec/backend/random_cases.hpp"

#include <boost/mpi/communicator.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace gs = gshard;
using line = gs::mesh<gs::axis<"x">>;
using plane = gs::mesh<gs::axis<"x">, gs::axis<"y">>;

namespace {

/// Checks that both have the same device of the same mesh, and receive the same data.
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
  CHECK(std::ranges::equal(found.received(), expected.received()));
}

}  // namespace

TEST_CASE("boost: a cluster is the one of the communicator's MPI_Comm") {
  const boost::mpi::communicator world;
  for (int rows = 1; rows <= world.size(); ++rows) {
    if (world.size() % rows != 0) continue;
    const std::vector<int> extents{rows, world.size() / rows};
    compare(gs::on_mpi<plane>(world, extents).backend(), gs::on_mpi<plane>(MPI_COMM_WORLD, extents).backend());
  }
  CHECK(gs::on_mpi<line>(world).size() == world.size());
}

TEST_CASE("boost: a part of the processes in another order; the communicator may go first") {
  const boost::mpi::communicator world;
  std::optional<boost::mpi::communicator> part = world.split(world.rank() % 2, -world.rank());
  const int rank = part->rank();
  const auto found = gs::on_mpi<line>(*part), expected = gs::on_mpi<line>(MPI_Comm(*part));
  part.reset();
  CHECK(found.devices()[0] == rank);
  compare(found.backend(), expected.backend());
}

TEST_CASE("boost: no communicator, and one of another size") {
  const boost::mpi::communicator world, none(MPI_COMM_NULL, boost::mpi::comm_attach);
  CHECK_THROWS_WITH_AS(gs::on_mpi<line>(none, {1}), "mpi_backend: the communicator is MPI_COMM_NULL", gs::error);
  CHECK_THROWS_WITH_AS(gs::on_mpi<line>(none), "mpi_backend: the communicator is MPI_COMM_NULL", gs::error);
  CHECK_THROWS_AS(gs::on_mpi<line>(world, {world.size() + 1}), gs::error);
}

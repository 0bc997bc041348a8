// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ring attention on MPI ranks: the same bits as on simulated devices.
#include "../mpi_world.hpp"
#include "ring_attention_cases.hpp"

#include <gshard/cluster/mpi_cluster.hpp>

#include <doctest/doctest.h>

using namespace ring;

namespace {

template <int Ranks>
using mesh_of = gs::mesh<gs::axis<"seq", Ranks>>;
template <int Ranks>
using around_ranks = program_of<in_ring<true>, mesh_of<Ranks>, over_seq>;

template <int Ranks>
void check_bits() {
  if (mpi_world::ranks() != Ranks) return;
  CHECK(run<around_ranks<Ranks>>(gs::on_mpi<mesh_of<Ranks>>(MPI_COMM_WORLD)) ==
        run<around_ranks<Ranks>>(gs::simulate<mesh_of<Ranks>>({Ranks})));
}

}  // namespace

TEST_CASE("ring attention: equal bits on ranks and simulated devices") {
  check_bits<1>();
  check_bits<2>();
  check_bits<4>();
}

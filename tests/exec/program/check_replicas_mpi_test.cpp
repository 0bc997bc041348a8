// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/program/check_replicas.hpp>

#include <gshard/cluster/mpi_cluster.hpp>

#include "../../mpi_world.hpp"
#include "../replica_cases.hpp"

namespace gs = gshard;

namespace {
template <class F>
void on_meshes_of_ranks(F check) {
  const int n = mpi_world::ranks();
  for (int data = 1; data <= n; ++data) {
    if (n % data != 0) continue;
    CAPTURE(data);
    check(gs::on_mpi<replica_cases::mesh>(MPI_COMM_WORLD, {data, n / data}));
  }
}
}  // namespace

TEST_CASE("mpi: check_replicas, a flipped bit in any copy of any tensor") { on_meshes_of_ranks(replica_cases::check_flipped_bits); }
TEST_CASE("mpi: check_replicas, the first element that differs") { on_meshes_of_ranks(replica_cases::check_first_difference); }
TEST_CASE("mpi: check_replicas, no false alarm") { on_meshes_of_ranks(replica_cases::check_no_false_alarm); }
TEST_CASE("mpi: check_replicas, every n steps of training") { on_meshes_of_ranks(replica_cases::check_every_n_steps); }
TEST_CASE("mpi: check_replicas, inputs at the first call") { on_meshes_of_ranks(replica_cases::check_inputs); }

TEST_CASE("mpi: check_replicas of different stores is told, and of one rank too") {
  const int n = mpi_world::ranks();
  if (n == 1) return;
  const gs::any_cluster on = gs::on_mpi<replica_cases::mesh>(MPI_COMM_WORLD, {n, 1});
  gs::parameter_store first(on), second(on);
  gs::executable<replica_cases::training> a(on, replica_cases::sizes, first), b(on, replica_cases::sizes, second);
  CHECK(contains(complaint([&] { gs::check_replicas(mpi_world::rank() == 0 ? first : second); }), "check_replicas of a store"));
  const std::string said = complaint([&] {
    if (mpi_world::rank() == 0) gs::check_replicas(first);
    else static_cast<void>(gs::to_global<float>(first, "bias"));
  });
  CHECK(contains(said, "the processes make different calls: rank 0 has check_replicas of a store"));
  CHECK(complaint([&] { gs::check_replicas(first); }) == "");
}

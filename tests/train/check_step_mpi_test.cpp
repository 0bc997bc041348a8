// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every rank throws the same error and skips the same steps.
#include <gshard/train/check_step.hpp>

#include <gshard/cluster/mpi_cluster.hpp>

#include "../mpi_world.hpp"
#include "not_finite_step.hpp"

namespace gs = gshard;

namespace {

template <class F>
void on_meshes_of_all_ranks(F check) {
  const int n = mpi_world::ranks();
  for (int data = 1; data <= n; ++data) {
    if (n % data != 0) continue;
    CAPTURE(data);
    check(gs::on_mpi<not_finite_step::mesh>(MPI_COMM_WORLD, {data, n / data}));
  }
}

}  // namespace

TEST_CASE("mpi: not_finite::stop") {
  on_meshes_of_all_ranks(not_finite_step::check_stop<false>);
  on_meshes_of_all_ranks(not_finite_step::check_stop<true>);
}
TEST_CASE("mpi: not_finite::skip") {
  on_meshes_of_all_ranks(not_finite_step::check_skip<false>);
  on_meshes_of_all_ranks(not_finite_step::check_skip<true>);
}
TEST_CASE("mpi: not_finite, all policies") { on_meshes_of_all_ranks(not_finite_step::check_equal_policies<false>); }
TEST_CASE("mpi: not_finite, a parameter that something else spoilt") {
  on_meshes_of_all_ranks(not_finite_step::check_spoilt_parameter);
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/check/check_finite_kernel.hpp>

#include <gshard/cluster/mpi_cluster.hpp>

#include "../../mpi_world.hpp"
#include "../../exec/bind/checked_program.hpp"

namespace gs = gshard;

TEST_CASE("mpi: check_finite names the first bad element on every rank") {
  const int n = mpi_world::ranks();
  for (int data = 1; data <= n; ++data)
    if (n % data == 0) checked_program::check_everywhere(gs::on_mpi<checked_program::mesh>(MPI_COMM_WORLD, {data, n / data}));
}

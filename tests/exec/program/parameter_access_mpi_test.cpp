// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/cluster/mpi_cluster.hpp>

#include "parameter_access.hpp"

TEST_CASE("whole parameters in and out of a store, one process a device") {
  parameter_access::check(gshard::on_mpi<parameter_access::mesh>(MPI_COMM_WORLD));
}

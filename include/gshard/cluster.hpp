// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Clusters of MPI processes. Needs MPI. <gshard/cluster/boost_mpi.hpp> is included by name.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/cluster/mpi_cluster.hpp>

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Makes a cluster from a Boost.MPI communicator.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/cluster/mpi_cluster.hpp>

#include <boost/mpi/communicator.hpp>

#include <vector>

namespace gshard { inline namespace v0 {

/// The processes of a Boost.MPI communicator, one device each: as on_mpi for its MPI_Comm. The communicator may be destroyed before the
/// cluster. Throws `gshard::error` as that function does, also for an empty communicator.
template <class Mesh>
cluster<Mesh> on_mpi(const boost::mpi::communicator& comm, const std::vector<int>& extents = {}, const mpi_options& options = {}) {
  return on_mpi<Mesh>(comm ? MPI_Comm(comm) : MPI_COMM_NULL, extents, options);
}

}}  // namespace gshard::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/comm/mpi.hpp>
#include <gshard/tensor/cluster.hpp>

#include <memory>
#include <vector>

namespace gshard { inline namespace v0 {

/// The processes of a communicator (an MPI_Comm, or a boost::mpi::communicator, which converts to one), one device each; the
/// communicator is duplicated once. Collective over it. MPI must have been initialised.
template <class Mesh>
cluster<Mesh> on_mpi(MPI_Comm comm, const std::vector<int>& extents) {
  return cluster<Mesh>(std::make_shared<mpi_backend>(comm, extents));
}
template <class Mesh>
cluster<Mesh> on_mpi(MPI_Comm comm) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  return on_mpi<Mesh>(comm, extents_on<Mesh>(size));
}

}}  // namespace gshard::v0

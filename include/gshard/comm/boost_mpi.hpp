// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/comm/mpi.hpp>

#include <boost/mpi/communicator.hpp>

#include <vector>

namespace gshard { inline namespace v0 {

/// An MPI backend on a duplicate of a Boost.MPI communicator, which may end before the backend does.
inline mpi_backend make_mpi_backend(const boost::mpi::communicator& comm, const std::vector<int>& extents) {
  return mpi_backend(comm ? MPI_Comm(comm) : MPI_COMM_NULL, extents);
}

}}  // namespace gshard::v0

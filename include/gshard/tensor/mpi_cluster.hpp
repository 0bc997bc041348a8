// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/comm/mpi.hpp>
#include <gshard/tensor/cluster.hpp>

#include <memory>
#include <vector>

namespace gshard { inline namespace v0 {

/// The processes of a communicator, one device each; the communicator is duplicated once. Extents that are not given share the
/// processes as equally as they can. Collective over the communicator. Throws `gshard::error` if MPI is not initialised, the
/// communicator is null or an intercommunicator, the mesh cannot hold its processes, or their options differ.
/// @see tensor/boost_mpi.hpp for Boost.MPI's communicators
template <class Mesh>
cluster<Mesh> on_mpi(MPI_Comm comm, const std::vector<int>& extents = {}, const mpi_options& options = {}) {
  const std::vector<int> all = extents.empty() ? extents_on<Mesh>(detail::process_count(comm)) : extents;
  return cluster<Mesh>(std::make_shared<mpi_backend>(comm, all, options));
}

}}  // namespace gshard::v0

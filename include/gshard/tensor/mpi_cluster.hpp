// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Makes a cluster from an MPI communicator, with one device per process.

#include <gshard/comm/mpi.hpp>
#include <gshard/comm/mpi_type.hpp>
#include <gshard/tensor/cluster.hpp>

#include <memory>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 {

/// The processes of a communicator, one device each. The communicator is duplicated once. If `extents` is empty, dynamic extents share the
/// processes as equally as possible. Collective over the communicator.
/// Throws `gshard::error` if MPI is not initialized, or if the communicator is null or an intercommunicator. On every process: if the mesh
/// does not fit the number of processes; if they differ in the mesh (names, order and extents of its axes), the options, the version of
/// gshard, or the compile options that change results.
/// @see tensor/boost_mpi.hpp for Boost.MPI's communicators
template <class Mesh>
cluster<Mesh> on_mpi(MPI_Comm comm, const std::vector<int>& extents = {}, const mpi_options& options = {}) {
  const int processes = detail::process_count(comm);
  std::vector<int> all = extents;
  const std::string problem = detail::problem_of([&] {
    if (extents.empty()) all = extents_on<Mesh>(processes);
  });
  return cluster<Mesh>(std::make_shared<mpi_backend>(comm, all, options, problem));
}

}}  // namespace gshard::v0

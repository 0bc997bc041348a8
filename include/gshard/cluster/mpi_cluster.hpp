// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Makes a cluster from an MPI communicator, with one device per process.

#include <gshard/cluster/mpi_communicator.hpp>
#include <gshard/cluster/mpi_options.hpp>
#include <gshard/cluster/mpi_type.hpp>
#include <gshard/core/base/build_options.hpp>
#include <gshard/core/base/compiled.hpp>
#include <gshard/core/cost/axis_order.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/exec/backend/backend.hpp>
#include <gshard/exec/tensor/cluster.hpp>

#include <concepts>
#include <memory>
#include <span>
#include <string>
#include <vector>

#if GSHARD_HAS_BODIES
#include <gshard/cluster/mpi.hpp>
#endif

namespace gshard { inline namespace v0 {

namespace detail {
/// The backend of these processes. Collective. Throws as its constructor does.
/// @see mpi_backend
std::shared_ptr<backend> make_mpi_backend(MPI_Comm comm, const std::vector<int>& extents, const mpi_options& options,
                                          const calling_program& program);

/// The extents of all axes of a mesh, or the error that this process has found.
struct mesh_extents {
  std::vector<int> extents;
  process_error problem;
};
inline mesh_extents mesh_extents_of(const mesh_shape& mesh, MPI_Comm comm, const std::vector<int>& given) {
  const int processes = process_count(comm);
  mesh_extents all;
  all.problem = problem_of([&] { all.extents = given.empty() ? extents_on(mesh, processes) : all_extents(mesh, given); });
  return all;
}
}  // namespace detail

/// The processes of a communicator, one device each. The communicator is duplicated once. `extents`: of all axes, or of those without a
/// static extent. If it is empty, the latter divide the processes as equally as possible. Collective over the communicator.
/// Throws `gshard::error` if MPI is not initialized, or if the communicator is null or an intercommunicator. Throws on every process: if
/// the mesh does not fit the number of processes; if they differ in the mesh (names, order and extents of its axes), the options, the
/// version of gshard, or the compile options that change results.
/// @see cluster/boost_mpi.hpp for Boost.MPI's communicators
template <class Mesh>
cluster<Mesh> on_mpi(MPI_Comm comm, const std::vector<int>& extents = {}, const mpi_options& options = {}) {
  const detail::mesh_extents all = detail::mesh_extents_of(Mesh::shape, comm, extents);
  return cluster<Mesh>(detail::make_mpi_backend(comm, all.extents, options, {all.problem, GSHARD_FLOAT_OPTIONS}));
}

/// The same with a mesh that is known at run time: `on_mpi(comm, "data=2,expert")`.
inline any_cluster on_mpi(MPI_Comm comm, const any_mesh& mesh, const std::vector<int>& extents = {}, const mpi_options& options = {}) {
  const detail::mesh_extents all = detail::mesh_extents_of(mesh, comm, extents);
  return any_cluster(mesh, detail::make_mpi_backend(comm, all.extents, options, {all.problem, GSHARD_FLOAT_OPTIONS}));
}

/// The same for a program: its plan chooses the axes that are within nodes, so that it sends the fewest bytes between nodes. Processes take
/// devices by their nodes. An axis order in `options` is kept. Communicates: also the nodes. Throws: also if the plans of the processes
/// choose different orders.
/// @see axis_order
template <class Mesh, std::same_as<plan_view> Plan>
cluster<Mesh> on_mpi(MPI_Comm comm, const Plan& plan, const dims& sizes, const std::vector<int>& extents = {}, mpi_options options = {}) {
  const detail::mesh_extents all = detail::mesh_extents_of(Mesh::shape, comm, extents);
  options.choose_axis_order = [&](std::span<const int> node) {
    const gshard::extents sizes_on = plan.bind(sizes, {all.extents.data(), all.extents.size()});
    const list<int> order = axis_order(plan, sizes_on, {node.data(), node.size()});
    return std::vector<int>(order.begin(), order.end());
  };
  return on_mpi<Mesh>(comm, extents, options);
}

#if GSHARD_HAS_BODIES
GSHARD_INLINE std::shared_ptr<backend> detail::make_mpi_backend(MPI_Comm comm, const std::vector<int>& extents, const mpi_options& options,
                                                                const calling_program& program) {
  return std::make_shared<mpi_backend>(comm, extents, options, program);
}
#endif

}}  // namespace gshard::v0

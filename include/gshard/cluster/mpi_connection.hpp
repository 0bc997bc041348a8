// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Connects the processes of a communicator to a mesh: a duplicate, the watch of waits, nodes, and the order of the devices.

#include <gshard/cluster/datagram_watch.hpp>
#include <gshard/cluster/mpi_agreement.hpp>
#include <gshard/cluster/mpi_communicator.hpp>
#include <gshard/cluster/mpi_options.hpp>
#include <gshard/cluster/rank_order.hpp>
#include <gshard/core/base/compiled.hpp>
#include <gshard/exec/backend/backend.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// A duplicate of a communicator whose ranks are the devices, and the watch of its waits.
struct mpi_connection {
  std::unique_ptr<datagram_watch> waits;
  communicator world;
  node_map nodes;
  cpu_level level = cpu_level::base;  ///< The lowest level of all processes.
};
/// Collective over `comm`. Throws as the constructor of mpi_backend does.
mpi_connection connect(MPI_Comm comm, std::span<const int> extents, const mpi_options& options, const calling_program& program);

#if GSHARD_HAS_BODIES

/// Makes MPI_Finalize tell the other processes that this one makes no further call. MPI_Finalize deletes the attributes of MPI_COMM_SELF.
GSHARD_INLINE void tell_at_finalize() {
  static const int attribute = [] {
    const auto tell = [](MPI_Comm, int, void*, void*) -> int {
      datagram_watch::leave_all("has called MPI_Finalize");
      return MPI_SUCCESS;
    };
    int key = MPI_KEYVAL_INVALID;
    if (MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, tell, &key, nullptr) == MPI_SUCCESS) MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
    return key;
  }();
  static_cast<void>(attribute);
}

/// The rank of each device, as chosen by the options.
GSHARD_INLINE std::vector<int> chosen_ranks(const communicator& world, std::span<const int> extents, const mpi_options& options,
                                            const std::vector<int>& nodes) {
  const std::vector<int> by_node = ranks_by_node(nodes);
  std::vector<int> axes = options.axis_order;
  const process_error problem = problem_of([&] {
    if (axes.empty()) axes = options.choose_axis_order(in_order_of(nodes, by_node));
    check_axis_order(extents, axes);
  });
  agree(world, std::vector<fact>{{"the call", "placing a mesh"}, {"the order of the axes", axis_order_text(axes)}}, problem);
  return ranks_by_device(extents, axes, by_node);
}

GSHARD_INLINE mpi_connection connect(MPI_Comm comm, std::span<const int> extents, const mpi_options& options,
                                     const calling_program& program) {
  mpi_connection made;
  communicator& world = made.world;
  process_error first_problem = program.problem;
  if (const int n = process_count(comm); n > 1 && (options.deadlines.warn > 0 || options.deadlines.fail > 0)) {
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    const process_error unwatched =
        problem_of([&] { made.waits = std::make_unique<datagram_watch>(rank, options.deadlines); });
    if (first_problem.empty()) first_problem = unwatched;
  }
  const process_error unknown_level = problem_of([&] { made.level = this_cpu_level(); });
  if (first_problem.empty()) first_problem = unknown_level;
  const wait_watch::wait waiting(made.waits.get(), "making a cluster");
  world = duplicate(comm);
  agree(world, backend_facts(extents, options, program), first_problem);
  if (!are_valid(options.deadlines))
    throw error("mpi_backend: deadlines of " + number_text(options.deadlines.warn) + " s and " +
                number_text(options.deadlines.fail) + " s must be at least 0");
  if (std::min({options.message_limit, options.node_piece, options.in_flight}) < 1 ||
      std::min({options.small_block, options.node_block, options.node_size}) < 0)
    throw error("mpi_backend: message limit " + std::to_string(options.message_limit) + ", pieces between nodes of " +
                std::to_string(options.node_piece) + " bytes, and in_flight " + std::to_string(options.in_flight) +
                " must be at least 1, and small blocks of " + std::to_string(options.small_block) + " bytes, or of " +
                std::to_string(options.node_block) + " bytes between nodes of " + std::to_string(options.node_size) +
                " processes, at least 0");
  const int n_devices = device_count(extents);
  if (n_devices != world.size())
    throw error("mpi_backend: a mesh of " + mesh_text(extents) + " needs " +
                std::to_string(n_devices) + " processes, but the communicator has " +
                std::to_string(world.size()));
  std::vector<int> nodes = nodes_of(world, options.node_size);
  if (!options.axis_order.empty() || options.choose_axis_order) {
    const std::vector<int> ranks = chosen_ranks(world, extents, options, nodes);
    const communicator by_device = communicator_of(world, ranks);
    mpi_options in_order = options;
    in_order.axis_order.clear();
    in_order.choose_axis_order = nullptr;
    mpi_connection placed = connect(by_device.get(), extents, in_order, {});
    placed.nodes.node = in_order_of(nodes, ranks);
    return placed;
  }
  world.check(MPI_Allreduce(MPI_IN_PLACE, &made.level, 1, MPI_UNSIGNED_CHAR, MPI_MIN, world.get()), "MPI_Allreduce");
  made.nodes = {std::move(nodes), options.sums, options.by_node != node_routing::never};
  if (made.waits) {
    const datagram_watch::endpoint mine = made.waits->mine();
    std::vector<datagram_watch::endpoint> all(std::size_t(world.size()));
    world.check(MPI_Allgather(&mine, int(sizeof mine), MPI_BYTE, all.data(), int(sizeof mine), MPI_BYTE, world.get()), "MPI_Allgather");
    made.waits->know_peers(std::move(all));
    tell_at_finalize();
  }
  return made;
}

#endif

}}}  // namespace gshard::v0::detail

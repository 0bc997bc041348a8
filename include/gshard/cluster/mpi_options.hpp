// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Options of the MPI backend, and the facts about a backend that its processes compare.

#include <gshard/cluster/wait_deadlines.hpp>
#include <gshard/core/base/compiled.hpp>
#include <gshard/core/base/version.hpp>
#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/backend/backend.hpp>
#include <gshard/exec/process/callback.hpp>

#if GSHARD_HAS_BODIES
#include <gshard/cluster/rank_order.hpp>
#include <gshard/core/base/build_options.hpp>
#include <gshard/exec/backend/device_group.hpp>
#include <gshard/exec/process/float_environment.hpp>
#endif

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gshard { inline namespace v0 {

/// When collectives between several nodes are hierarchical. `never`: neither reductions and gathers (see node_map) nor small exchanges. In
/// a hierarchical exchange, two nodes send each other one message. Exchanges that overlap with other steps are direct.
enum class node_routing { never, where_it_saves, always };

/// When collectives of programs are in flight while steps compute. `automatic`: the first runs of a program are measured both ways, and
/// later runs take the faster one. Results have the same bits.
enum class overlap_mode { automatic, on, off };

/// Deadlines of waits, shared memory, and limits that suit most networks. They must be the same on all processes.
struct mpi_options {
  int message_limit = 1 << 30;  ///< The largest message in bytes; longer ones are split.
  int in_flight = 32;           ///< The number of members with which messages of one collective are in flight at a time.
  int small_block = 4096;       ///< Blocks of at most this average size in bytes are gathered by MPI_Allgatherv, through one buffer.
  /// When small exchanges are hierarchical. `where_it_saves`: if blocks are known to have at most `node_block` bytes, and a process then
  /// sends at most half as many messages to other nodes. `always`: if the blocks of a group are known to fit into one message.
  node_routing by_node = node_routing::where_it_saves;
  int node_block = 1024;
  int node_size = 0;  ///< The number of successive ranks on a node; 0: ranks that share memory are on one node.
  /// Blocks for other nodes are sent in pieces of this many bytes. A block that would need more than 512 is sent in 512 larger ones. Over
  /// TCP, Open MPI and MPICH send messages below 64 KiB at once. Longer ones wait for an answer of the receiver, which queues behind other
  /// data. MPI keeps pieces for a late receiver: up to 30 MiB per sender. On a network with RDMA, whole blocks (1 << 30) may be faster.
  int node_piece = 60 << 10;
  summation sums = summation::by_member;  ///< The order of sums over ranks. @see sum_order
  /// The axes of the mesh, from the outermost to the innermost. Processes, sorted by node, take devices in this order, so the innermost
  /// axes are within nodes. Empty: rank r takes device r. Otherwise error messages call device d rank d. @see axis_order
  std::vector<int> axis_order{};
  /// Chooses axis_order, if it is empty, from the node of each process. Processes are sorted by node. The same result on all processes.
  callback<std::vector<int>(std::span<const int> node)> choose_axis_order{};
  /// Programs keep their tensors, except parameters, in shared memory. Data are then copied directly from shard to shard instead of being
  /// sent as messages. Results have the same bits. It has no effect unless all processes are on one node. Shared memory is freed only by
  /// the destructor of the backend.
  bool shared_memory = false;
  /// When collectives of programs overlap with computation. Without shared memory only. @see async_schedule, executor::overlaps
  overlap_mode overlap = overlap_mode::automatic;
  wait_deadlines deadlines{};  ///< Deadlines of waits for other processes. @see wait_deadlines
};

namespace detail {
/// The program that makes a cluster.
struct calling_program {
  process_error problem{};            ///< An error on this process, or empty.
  const char* compile_options = "";  ///< GSHARD_FLOAT_OPTIONS of its source. Functions of `map`, among others, are compiled there.
};
/// The facts that must be equal on all processes of a backend.
std::vector<fact> backend_facts(std::span<const int> extents, const mpi_options& options, const calling_program& program = {},
                                std::string_view library = version);
}  // namespace detail

#if GSHARD_HAS_BODIES

namespace detail {
GSHARD_INLINE std::vector<fact> backend_facts(std::span<const int> extents, const mpi_options& options, const calling_program& program,
                                              std::string_view library) {
  const auto option = [](const char* name, auto value) { return fact{"mpi_options::" + std::string(name), std::to_string(int(value))}; };
  return {{"the call", "making a cluster of MPI processes"},
          {"the version of gshard", std::string(library)},
          {"the compile options that change results", GSHARD_MATRIX_LIBRARIES GSHARD_FLOAT_OPTIONS},
          {"the compile options of the program that change results", program.compile_options},
          {"the floating-point environment", float_environment::here().text()},
          {"the mesh", mesh_text(extents)},
          option("message_limit", options.message_limit),
          option("node_piece", options.node_piece),
          option("in_flight", options.in_flight),
          option("small_block", options.small_block),
          option("by_node", options.by_node),
          option("node_block", options.node_block),
          option("node_size", options.node_size),
          option("sums", options.sums),
          {"mpi_options::axis_order", axis_order_text(options.axis_order)},
          {"mpi_options::choose_axis_order", options.choose_axis_order ? "a function" : "none"},
          option("shared_memory", options.shared_memory),
          option("overlap", options.overlap),
          {"mpi_options::deadlines", number_text(options.deadlines.warn) + " s, " + number_text(options.deadlines.fail) + " s"}};
}
}  // namespace detail

#endif

}}  // namespace gshard::v0

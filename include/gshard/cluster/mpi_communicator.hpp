// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// An owning MPI communicator that turns error codes into exceptions, and queries of the node and cores of its processes.

#include <gshard/core/base/compiled.hpp>
#include <gshard/exec/process/cores.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/exec/process/thread_rule.hpp>

// Include only the C API: the C++ bindings of mpi.h need another library. A program that uses them must include mpi.h first.
#pragma push_macro("OMPI_SKIP_MPICXX")
#pragma push_macro("MPICH_SKIP_MPICXX")
#undef OMPI_SKIP_MPICXX
#undef MPICH_SKIP_MPICXX
#define OMPI_SKIP_MPICXX
#define MPICH_SKIP_MPICXX
#include <mpi.h>
#pragma pop_macro("MPICH_SKIP_MPICXX")
#pragma pop_macro("OMPI_SKIP_MPICXX")

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#if defined(OPEN_MPI)
GSHARD_NEEDS(needs_gshard_compiled_with_Open_MPI);
#elif defined(MPICH_VERSION)
GSHARD_NEEDS(needs_gshard_compiled_with_MPICH);
#endif

namespace gshard { inline namespace v0 {

namespace detail {
/// Owns a communicator. Its errors are returned, not fatal.
class communicator {
 public:
  communicator() = default;
  explicit communicator(MPI_Comm owned) : comm_(owned) {
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    check(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
  }
  communicator(communicator&& other) noexcept
      : comm_(std::exchange(other.comm_, MPI_COMM_NULL)), rank_(other.rank_), size_(other.size_) {}
  communicator& operator=(communicator&& other) noexcept {
    std::swap(comm_, other.comm_);
    std::swap(rank_, other.rank_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~communicator() {
    if (comm_ == MPI_COMM_NULL) return;
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized == 0) MPI_Comm_free(&comm_);
  }

  bool empty() const { return comm_ == MPI_COMM_NULL; }
  MPI_Comm get() const { return comm_; }
  int rank() const { return rank_; }
  int size() const { return size_; }

  void check(int code, const char* call) const {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    throw error(std::string(call) + " failed on rank " + std::to_string(rank_) + " of " +
                std::to_string(size_) + ": " + std::string(text, std::size_t(length)));
  }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
};

/// The level of thread support of MPI.
int thread_level();
thread_rule::allows allowed_threads();

/// Throws unless a backend can use this communicator, called from this thread.
void check_usable(MPI_Comm comm);

int process_count(MPI_Comm comm);

communicator duplicate(MPI_Comm comm);

/// The communicator of these ranks, in this order. Collective over these ranks only.
communicator communicator_of(const communicator& world, std::span<const int> ranks);

/// The communicator of the processes on this node. Collective.
communicator node_of(const communicator& world);

/// The node of every process, by rank. `node_size`: the number of successive ranks on a node; 0: processes that share memory are on one
/// node. Collective.
std::vector<int> nodes_of(const communicator& world, int node_size);

/// The largest number of processes that may run on one of this process's cores. Collective.
int processes_on_cores(const communicator& world);
}  // namespace detail

#if GSHARD_HAS_BODIES

namespace detail {

GSHARD_INLINE int thread_level() {
  int provided = MPI_THREAD_SINGLE;
  MPI_Query_thread(&provided);
  return provided;
}

GSHARD_INLINE thread_rule::allows allowed_threads() {
  using allows = thread_rule::allows;
  const int level = thread_level();
  return level == MPI_THREAD_MULTIPLE     ? allows::one_at_a_time
         : level == MPI_THREAD_SERIALIZED ? allows::one_in_process
                                          : allows::main_thread;
}

GSHARD_INLINE void check_usable(MPI_Comm comm) {
  int initialized = 0, finalized = 0, inter = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (initialized == 0) throw error("mpi_backend: MPI is not initialized; call MPI_Init_thread first");
  if (finalized != 0) throw error("mpi_backend: MPI is already finalized");
  int is_main = 0;
  if (allowed_threads() == thread_rule::allows::main_thread && MPI_Is_thread_main(&is_main) == MPI_SUCCESS && is_main == 0)
    thread_rule(thread_rule::allows::main_thread).refuse();
  if (comm == MPI_COMM_NULL) throw error("mpi_backend: the communicator is MPI_COMM_NULL");
  MPI_Comm_test_inter(comm, &inter);
  if (inter != 0) throw error("mpi_backend: the communicator is an intercommunicator");
}

GSHARD_INLINE int process_count(MPI_Comm comm) {
  check_usable(comm);
  int size = 0;
  communicator().check(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  return size;
}

GSHARD_INLINE communicator duplicate(MPI_Comm comm) {
  check_usable(comm);
  MPI_Comm copy = MPI_COMM_NULL;
  communicator().check(MPI_Comm_dup(comm, &copy), "MPI_Comm_dup");
  return communicator(copy);
}

GSHARD_INLINE communicator communicator_of(const communicator& world, std::span<const int> ranks) {
  MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
  MPI_Comm made = MPI_COMM_NULL;
  constexpr int tag = 0;
  int code = MPI_Comm_group(world.get(), &all);
  if (code == MPI_SUCCESS) code = MPI_Group_incl(all, int(ranks.size()), ranks.data(), &some);
  if (code == MPI_SUCCESS) code = MPI_Comm_create_group(world.get(), some, tag, &made);
  if (some != MPI_GROUP_NULL) MPI_Group_free(&some);
  if (all != MPI_GROUP_NULL) MPI_Group_free(&all);
  world.check(code, "MPI_Comm_create_group");
  return communicator(made);
}

GSHARD_INLINE communicator node_of(const communicator& world) {
  MPI_Comm made = MPI_COMM_NULL;
  world.check(MPI_Comm_split_type(world.get(), MPI_COMM_TYPE_SHARED, world.rank(), MPI_INFO_NULL, &made), "MPI_Comm_split_type");
  return communicator(made);
}

GSHARD_INLINE std::vector<int> nodes_of(const communicator& world, int node_size) {
  std::vector<int> nodes(std::size_t(world.size()));
  int mine = world.rank();
  if (node_size > 0) {
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) nodes[rank] = int(rank) / node_size;
    return nodes;
  }
  const communicator node = node_of(world);
  node.check(MPI_Bcast(&mine, 1, MPI_INT, 0, node.get()), "MPI_Bcast");
  world.check(MPI_Allgather(&mine, 1, MPI_INT, nodes.data(), 1, MPI_INT, world.get()), "MPI_Allgather");
  return nodes;
}

GSHARD_INLINE int processes_on_cores(const communicator& world) {
  const communicator node = node_of(world);
  const core_flags mine = cores_of_process();
  core_flags all;
  node.check(MPI_Allreduce(mine.data(), all.data(), int(all.size()), MPI_INT, MPI_SUM, node.get()), "MPI_Allreduce");
  int most = 1;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (mine[i] != 0) most = std::max(most, all[i]);
  return most;
}

}  // namespace detail

#endif

}}  // namespace gshard::v0

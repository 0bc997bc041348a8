// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Memory that the MPI ranks of a node share.

#include <gshard/cluster/mpi_communicator.hpp>
#include <gshard/exec/process/error.hpp>

#include <sys/statvfs.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// True if all processes are on one node; the same on all. Collective.
inline bool on_one_node(const communicator& world) {
  const communicator node = node_of(world);
  int all = node.size() == world.size() ? 1 : 0;
  world.check(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, world.get()), "MPI_Allreduce");
  return all == 1;
}

/// Allocates memory that all processes of a communicator can read. They must be on one node. Unused memory is reused, but freed only by the
/// destructor, because MPI frees it collectively.
class node_memory {
 public:
  explicit node_memory(const communicator& world) : world_(&world) {}
  node_memory(const node_memory&) = delete;
  node_memory& operator=(const node_memory&) = delete;
  /// Collective.
  ~node_memory() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized != 0) return;
    for (window& w : windows_) {
      MPI_Win_unlock_all(w.handle);
      MPI_Win_free(&w.handle);
    }
  }

  /// Allocates memory for this process, aligned to a cache line. Collective; sizes may differ between processes.
  std::shared_ptr<std::byte> take(std::int64_t bytes) {
    // A window may be unused here and used by another process.
    std::vector<std::int64_t> known{-bytes};
    for (const window& w : windows_) known.push_back(w.used.expired() ? 1 : 0);
    world_->check(MPI_Allreduce(MPI_IN_PLACE, known.data(), int(known.size()), MPI_INT64_T, MPI_MIN, world_->get()), "MPI_Allreduce");
    const std::int64_t most = -known[0];
    std::size_t best = windows_.size();
    for (std::size_t i = 0; i < windows_.size(); ++i)
      if (known[i + 1] == 1 && windows_[i].bytes >= most && (best == windows_.size() || windows_[i].bytes < windows_[best].bytes)) best = i;
    if (best == windows_.size()) add_window(most);
    window& w = windows_[best];
    std::shared_ptr<std::byte> taken(w.base[std::size_t(world_->rank())], [](std::byte*) {});
    w.used = taken;
    return taken;
  }

  /// Translates k addresses of every process to addresses of this process: k of rank 0, k of rank 1, ... An address outside this memory
  /// becomes null. Collective; all processes pass the same number of addresses.
  std::vector<const std::byte*> find(std::span<const std::byte* const> mine) const {
    const auto me = std::size_t(world_->rank()), size = std::size_t(world_->size());
    struct place {
      std::int64_t window = -1, offset = 0;
    };
    std::vector<place> here(mine.size()), all(mine.size() * size);
    for (std::size_t k = 0; k < mine.size(); ++k)
      for (std::size_t i = 0; i < windows_.size() && mine[k]; ++i)
        if (const std::byte* const base = windows_[i].base[me];
            !std::less<>()(mine[k], base) && std::less<>()(mine[k], base + windows_[i].bytes))
          here[k] = {std::int64_t(i), mine[k] - base};
    const int bytes = int(mine.size() * sizeof(place));
    world_->check(MPI_Allgather(here.data(), bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE, world_->get()), "MPI_Allgather");
    std::vector<const std::byte*> found;
    for (std::size_t k = 0; k < all.size(); ++k)
      found.push_back(all[k].window < 0 ? nullptr : windows_[std::size_t(all[k].window)].base[k / mine.size()] + all[k].offset);
    return found;
  }

 private:
  static constexpr std::int64_t alignment = 64;
  struct window {
    MPI_Win handle = MPI_WIN_NULL;
    std::int64_t bytes = 0;         // per process
    std::vector<std::byte*> base;   // by rank, as addresses of this process
    std::weak_ptr<std::byte> used;  // the use by this process
  };
  const communicator* world_;
  std::vector<window> windows_;

  /// Throws on all processes if the node has too little shared memory. MPI itself would fail on one process, and the others would hang.
  void check_space(std::int64_t bytes) const {
    if (world_->size() == 1) return;  // MPI then uses private memory
    struct statvfs shm {};
    const bool is_known = statvfs("/dev/shm", &shm) == 0;
    std::int64_t space = is_known ? std::int64_t(shm.f_bavail) * std::int64_t(shm.f_frsize) : std::numeric_limits<std::int64_t>::max();
    world_->check(MPI_Allreduce(MPI_IN_PLACE, &space, 1, MPI_INT64_T, MPI_MIN, world_->get()), "MPI_Allreduce");
    if (bytes > space / world_->size())
      throw error("there is no shared memory for " + std::to_string(bytes) + " bytes in each of " + std::to_string(world_->size()) +
                  " processes: /dev/shm has " + std::to_string(space) + " left");
  }
  void add_window(std::int64_t bytes) {
    constexpr std::int64_t page = 4096;
    check_space(bytes + 2 * alignment + page);
    window w;
    w.bytes = bytes + alignment;  // so an empty value at the end has an address inside the window
    MPI_Info apart = MPI_INFO_NULL;  // each process's memory on separate pages
    MPI_Info_create(&apart);
    MPI_Info_set(apart, "alloc_shared_noncontig", "true");
    void* mine = nullptr;
    const int code = MPI_Win_allocate_shared(w.bytes + alignment, 1, apart, world_->get(), &mine, &w.handle);
    MPI_Info_free(&apart);
    world_->check(code, "MPI_Win_allocate_shared");
    MPI_Win_set_errhandler(w.handle, MPI_ERRORS_RETURN);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, w.handle);
    for (int rank = 0; rank < world_->size(); ++rank) {
      MPI_Aint size = 0;
      int unit = 0;
      void* base = nullptr;
      world_->check(MPI_Win_shared_query(w.handle, rank, &size, &unit, &base), "MPI_Win_shared_query");
      const auto past = std::int64_t(reinterpret_cast<std::uintptr_t>(base) % std::uintptr_t(alignment));
      w.base.push_back(static_cast<std::byte*>(base) + (past == 0 ? 0 : alignment - past));
    }
    windows_.push_back(std::move(w));
  }
};

}}}  // namespace gshard::v0::detail

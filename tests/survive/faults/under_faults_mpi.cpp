// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every system call of a save on MPI ranks fails in turn, on one rank or on all: earlier checkpoints still load, also without one of the
// disks. Run with the library of faults.cpp preloaded.
#include "fault.hpp"

#include "../../io/shared_scratch.hpp"
#include "../run_stores.hpp"

#include <gshard/cluster/mpi.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gs = gshard;
namespace fs = std::filesystem;
using faults::fault, faults::is_harmless, faults::kinds;
using run_stores::is_step, run_stores::set_step;

namespace {

constexpr int all_ranks = -1;

/// A rank that waits for 60 s ends the run: no fault may make a rank wait forever.
gs::any_cluster on_ranks() {
  const std::vector<int> extents{mpi_world::ranks()};
  return {stores::shape_of(extents), std::make_shared<gs::mpi_backend>(MPI_COMM_WORLD, extents, gs::mpi_options{.deadlines = {20, 60}})};
}
gs::parameter_store small_store(const gs::any_cluster& on, std::uint32_t step) {
  gs::parameter_store store = stores::make(on, stores::usual(), 3);
  set_step(store, step);
  return store;
}
bool on_any_rank(bool here) {
  int flag = here ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &flag, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return flag != 0;
}
/// `here`, which must be equal on all ranks.
bool on_all_ranks(bool here) {
  CHECK(on_any_rank(here) == !on_any_rank(!here));
  return here;
}

/// One directory of all ranks, or one per rank, as if on its host's disk.
struct directories {
  shared_scratch dir;
  bool per_host;

  std::string of(const char* name, int rank) const { return dir / (std::string(name) + (per_host ? std::to_string(rank) : "")) + "/run"; }
  std::string mine(const char* name = "disk") const { return of(name, mpi_world::rank()); }
  /// The directories that remain when the disk of one rank is lost.
  std::string without(int lost) const {
    MPI_Barrier(MPI_COMM_WORLD);
    const fs::path copy = mine("copy");
    fs::remove_all(copy);
    fs::create_directories(copy.parent_path());
    if (mpi_world::rank() != lost) fs::copy(mine(), copy, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    MPI_Barrier(MPI_COMM_WORLD);
    return copy;
  }
};

gs::checkpointer_options quietly(bool per_host) {
  return {.per_host = per_host, .report = [](const std::string&) {}};
}
/// The step of a directory's newest valid checkpoint. Checks its content.
std::uint32_t step_in(const gs::any_cluster& on, const std::string& path, bool per_host) {
  gs::parameter_store store = small_store(on, 0);
  gs::checkpointer checkpoints(store, path, quietly(per_host));
  const auto back = checkpoints.resume();
  REQUIRE(back.has_value());
  CHECK(is_step(store, back->step));
  return back->step;
}

struct counts {
  int saves = 0, failed = 0, loads = 0;
};

/// Saves while calls on `failing` fail. Each save is in a run that is resumed from the one before.
counts fail_saves(const gs::any_cluster& on, bool per_host, int failing) {
  const directories at{.dir = {}, .per_host = per_host};
  counts n;
  std::uint32_t step = 1, safe = 1;
  {
    gs::parameter_store store = small_store(on, step);
    REQUIRE(on_all_ranks(gs::checkpointer(store, at.mine(), quietly(per_host)).save()));
  }
  int round = 0;
  for (const auto& [how, later] : kinds) {
    const int stride = faults::stride(17);
    for (int nth = 1 + round++ % stride;; nth += stride) {
      CAPTURE(per_host);
      CAPTURE(failing);
      CAPTURE(how);
      CAPTURE(later);
      CAPTURE(nth);
      gs::parameter_store store = small_store(on, 0);
      std::optional<gs::checkpointer> checkpoints(std::in_place, store, at.mine(), quietly(per_host));
      const auto back = checkpoints->resume();
      REQUIRE(back.has_value());
      CHECK(back->step >= safe);
      CHECK(back->step <= step);
      CHECK(is_step(store, back->step));
      ++n.loads;
      set_step(store, ++step);
      const bool is_here = failing == all_ranks || failing == mpi_world::rank();
      fault f(is_here ? nth : 0, how, later);
      const bool saved = on_all_ranks(checkpoints->save());
      checkpoints.reset();  // also the files that its thread removes
      const bool happened = on_any_rank(f.end());
      if (saved) safe = step;
      if (!happened) {
        CHECK(saved);
        break;
      }
      ++n.saves;
      n.failed += saved ? 0 : 1;
      if (is_harmless(how)) CHECK(saved);
      if (!per_host) continue;
      const std::uint32_t found = step_in(on, at.without(nth % mpi_world::ranks()), per_host);
      CHECK(found >= safe);
      CHECK(found <= step);
      ++n.loads;
    }
  }
  CHECK(step_in(on, at.mine(), per_host) == step);  // the last save of every kind succeeds
  return n;
}

/// Resumes while calls on `failing` fail. There are checkpoints of steps 1 and 2.
counts fail_resumes(const gs::any_cluster& on, bool per_host, int failing) {
  const directories at{.dir = {}, .per_host = per_host};
  counts n;
  {
    gs::parameter_store store = small_store(on, 1);
    gs::checkpointer checkpoints(store, at.mine(), quietly(per_host));
    REQUIRE(checkpoints.save());
    set_step(store, 2);
    REQUIRE(checkpoints.save());
  }
  int round = 0;
  for (const auto& [how, later] : kinds) {
    const int stride = faults::stride(11);
    for (int nth = 1 + round++ % stride;; nth += stride) {
      CAPTURE(per_host);
      CAPTURE(failing);
      CAPTURE(how);
      CAPTURE(later);
      CAPTURE(nth);
      MPI_Barrier(MPI_COMM_WORLD);
      gs::parameter_store store = small_store(on, 9);
      std::optional<gs::resumed> back;
      const bool is_here = failing == all_ranks || failing == mpi_world::rank();
      fault f(is_here ? nth : 0, how, later);
      const std::string problem = complaint([&] { back = gs::checkpointer(store, at.mine(), quietly(per_host)).resume(); });
      const bool happened = on_any_rank(f.end());
      if (!happened) break;
      ++n.loads;
      if (!on_all_ranks(problem.empty())) ++n.failed;
      if (is_harmless(how)) CHECK(problem == "");
      if (problem.empty()) REQUIRE(back.has_value());
      CHECK(is_step(store, !problem.empty() ? 9 : back->refused.empty() ? 2 : 1));
    }
  }
  return n;
}

}  // namespace

TEST_CASE("faults on ranks: every call of a save fails in turn, on one rank or on all") {
  const gs::any_cluster on = on_ranks();
  counts all;
  for (const bool per_host : {false, true})
    for (int failing = all_ranks; failing < mpi_world::ranks(); ++failing) {
      const counts n = fail_saves(on, per_host, failing);
      if (mpi_world::rank() == 0)
        MESSAGE(std::string(per_host ? "a directory per host" : "one directory"), ", calls fail on rank ", failing, ": ", n.saves,
                " saves, of which ", n.failed, " failed; ", n.loads, " loads");
      CHECK(n.failed > 3);  // a rank that only writes its part makes few calls
      all.saves += n.saves;
      all.failed += n.failed;
      all.loads += n.loads;
    }
  if (mpi_world::rank() == 0) MESSAGE(all.saves, " saves, of which ", all.failed, " failed; ", all.loads, " loads, all of them right");
}

TEST_CASE("faults on ranks: every call of a resume fails in turn, on one rank or on all") {
  const gs::any_cluster on = on_ranks();
  counts all;
  for (const bool per_host : {false, true})
    for (int failing = all_ranks; failing < mpi_world::ranks(); ++failing) {
      const counts n = fail_resumes(on, per_host, failing);
      all.failed += n.failed;
      all.loads += n.loads;
    }
  CHECK(all.failed > 10);
  if (mpi_world::rank() == 0) MESSAGE(all.loads, " resumes, of which ", all.failed, " gave an error");
}

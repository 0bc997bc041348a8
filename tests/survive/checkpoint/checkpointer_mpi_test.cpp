// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/checkpoint/checkpointer.hpp>

#include <gshard/cluster/mpi.hpp>
#include <gshard/exec/backend/balanced_extents.hpp>

#include "../../exec/backend/float_modes.hpp"
#include "../../io/shared_scratch.hpp"
#include "../keys.hpp"
#include "../other_process.hpp"
#include "../run_stores.hpp"

#include <doctest/doctest.h>

#include <cfenv>
#include <csignal>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gs = gshard;
namespace fs = std::filesystem;

namespace {

using namespace run_stores;

bool is_leader() { return mpi_world::rank() == 0; }
/// A mesh on the first `ranks` ranks. Nothing on the others.
std::optional<gs::any_cluster> on_first(int ranks, const std::vector<int>& extents) {
  MPI_Comm some = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, mpi_world::rank() < ranks ? 0 : MPI_UNDEFINED, mpi_world::rank(), &some);
  if (some == MPI_COMM_NULL) return std::nullopt;
  gs::any_cluster on{stores::shape_of(extents), std::make_shared<gs::mpi_backend>(some, extents)};
  MPI_Comm_free(&some);
  return on;
}
gs::any_cluster on_all() { return *on_first(mpi_world::ranks(), {mpi_world::ranks()}); }

/// The text of the error. All ranks throw, or none.
template <class F>
std::string complaint_of_all(F f) {
  const std::string said = complaint(f);
  int mine = said.empty() ? 0 : 1, most = 0, least = 0;
  MPI_Allreduce(&mine, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(&mine, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  CHECK(most == least);
  return said;
}
void run(gs::parameter_store& store, gs::checkpointer& checkpoints, std::uint32_t first, std::uint32_t last) {
  for (std::uint32_t step = first; step <= last; ++step) {
    set_step(store, step);
    REQUIRE(checkpoints.after_step());
    while (checkpoints.in_flight()) checkpoints.after_step();
  }
}

/// Each rank's own disk: a directory that the others do not see.
struct disks {
  shared_scratch dir;
  std::string mine(int per_disk = 1) const { return dir / ("disk" + std::to_string(mpi_world::rank() / per_disk)) + "/run"; }
  /// Replaces a lost disk by an empty one.
  void lose(int disk) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (is_leader()) fs::remove_all(dir / ("disk" + std::to_string(disk)));
    MPI_Barrier(MPI_COMM_WORLD);
  }
};

}  // namespace

TEST_CASE("checkpointer, mpi: every pair of rank counts, and of simulated meshes: the same bytes; each rank reads its share") {
  const shared_scratch dir;
  const auto large = [](const gs::any_cluster& on, std::uint64_t seed) {
    gs::parameter_store store = stores::make(on, tensors(), seed);
    stores::add(store, {"larger", gs::dtype::f32, {400, 150}}, gs::sharding::replicated(2));
    return store;
  };
  std::vector<std::vector<int>> meshes;
  for (int n = 1; n <= mpi_world::ranks(); ++n)
    for (const std::vector<int>& m : {std::vector<int>{n}, gs::balanced_extents(n, std::vector(2, gs::dynamic))}) meshes.push_back(m);
  for (std::size_t from = 0; from < meshes.size(); ++from) {
    const std::string path = dir / ("run" + std::to_string(from));
    if (const auto on = on_first(gs::device_count(meshes[from]), meshes[from])) {
      gs::parameter_store store = large(*on, from);
      set_step(store, 7);
      gs::checkpointer checkpoints(store, path);
      CHECK(checkpoints.save());
    }
    MPI_Barrier(MPI_COMM_WORLD);
    std::int64_t total = 0;
    for (const auto& entry : fs::directory_iterator(path + "/step-0000000007"))
      if (entry.path().extension() == ".bin") total += std::int64_t(entry.file_size());
    for (std::size_t to = 0; to < meshes.size(); ++to)
      if (const auto on = on_first(gs::device_count(meshes[to]), meshes[to])) {
        CAPTURE(gs::detail::mesh_text(meshes[from]));
        CAPTURE(gs::detail::mesh_text(meshes[to]));
        gs::parameter_store store = large(*on, 100 + to);
        set_step(store, 0);
        gs::checkpointer checkpoints(store, path);
        const auto back = checkpoints.resume();
        REQUIRE(back.has_value());
        CHECK(is_step(store, 7));
        CHECK(double(back->bytes_read) <= 1.1 * double(total) / gs::device_count(meshes[to]));
      }
    if (is_leader())
      for (const int devices : {1, 3, 8}) {
        gs::parameter_store store = large(stores::simulated({devices}), 50);
        set_step(store, 0);
        CHECK(gs::checkpointer(store, path).resume()->step == 7);
        CHECK(is_step(store, 7));
      }
  }
}

TEST_CASE("checkpointer, mpi: by steps, by time, by a request of one rank") {
  const shared_scratch dir;
  {
    gs::parameter_store store = make(on_all());
    gs::checkpointer checkpoints(store, dir / "run", {.every_steps = 4, .keep = 2});
    CHECK_FALSE(checkpoints.resume().has_value());
    run(store, checkpoints, 1, 13);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(names_in(dir / "run") == texts{"latest", "step-0000000008", "step-0000000012"});
  gs::parameter_store store = make(on_all(), 9);
  std::optional<gs::stop_request> stop;
  if (mpi_world::rank() == mpi_world::ranks() - 1) stop.emplace();
  gs::checkpointer checkpoints(store, dir / "run", {.every_seconds = 0.01});
  REQUIRE(checkpoints.resume()->step == 12);
  std::uint32_t step = 12;
  while (!checkpoints.last().empty() && checkpoints.last().ends_with("12")) run(store, checkpoints, step + 1, step + 1), ++step;
  if (stop) std::raise(SIGUSR1);
  set_step(store, ++step);
  CHECK_FALSE(checkpoints.after_step());
  CHECK(checkpoints.last().ends_with(std::to_string(step)));
  checkpoints.finish();
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(content_of(dir / "run/finished") == "finished at step " + std::to_string(step) + "\n");
}

TEST_CASE("checkpointer, mpi: the leader's state comes to all ranks; a restore that fails on one rank fails on all") {
  const shared_scratch dir;
  gs::parameter_store store = make(on_all(), 1, 7);
  std::string position = "of rank " + std::to_string(mpi_world::rank());
  {
    gs::checkpointer checkpoints(store, dir / "run");
    checkpoints.keep_state("position", [&] { return position; }, [](std::string_view) {});
    gs::event_log events(store.cluster(), dir / "run");
    checkpoints.log_to(events);
    CHECK(checkpoints.save());
  }
  const gs::manifest m = gs::detail::parse_manifest(content_of(dir / "run/latest/manifest.json"));
  REQUIRE(m.event_logs.size() == std::size_t(mpi_world::ranks()));
  CHECK(m.event_logs.back().file == "events-0000" + std::to_string(mpi_world::ranks() - 1) + ".jsonl");
  gs::checkpointer checkpoints(store, dir / "run");
  checkpoints.keep_state("position", [&] { return position; }, [&](std::string_view t) { position = t; });
  checkpoints.resume();
  CHECK(position == "of rank 0");
  const std::string said = complaint_of_all([&] {
    gs::checkpointer other(store, dir / "run");
    other.keep_state("position", [&] { return position; }, [](std::string_view) {
      if (mpi_world::rank() == mpi_world::ranks() - 1) throw gs::error("no such position");
    });
    other.resume();
  });
  CHECK(contains(said, "restoring the state \"position\" failed: no such position"));
  const std::string failed = complaint_of_all([&] {
    gs::checkpointer other(store, dir / "other");
    other.keep_state("x", []() -> std::string { throw gs::error("nothing to save"); }, [](std::string_view) {});
    other.save();
  });
  CHECK(contains(failed, "nothing to save"));
}

TEST_CASE("checkpointer, mpi: ranks that disagree are told so") {
  if (mpi_world::ranks() == 1) return;
  const shared_scratch dir;
  gs::parameter_store store = make(on_all(), 1, 7);
  const bool odd = mpi_world::rank() == 1;
  const auto said = [&](gs::checkpointer_options options) {
    return complaint_of_all([&] { gs::checkpointer(store, dir / "run", options); });
  };
  CHECK(contains(said({.every_steps = odd ? 1u : 2u}), "checkpointer_options::every_steps"));
  CHECK(contains(said({.keep = odd ? 3 : 2}), "checkpointer_options::keep"));
  CHECK(contains(said({.settings = {{"rate", odd ? "1" : "2"}}}), "setting \"rate\""));
  CHECK(contains(said({.keep = odd ? 0 : 2}), "keep"));
  gs::checkpointer checkpoints(store, dir / "run", {.every_steps = 1});
  CHECK(contains(complaint_of_all([&] { odd ? (void)checkpoints.resume() : (void)checkpoints.save(); }),
                 "the processes make different calls"));
  set_step(store, odd ? 9 : 8);
  CHECK(contains(complaint_of_all([&] { checkpoints.after_step(); }), "the number of finished steps"));
  set_step(store, 9);
  CHECK(checkpoints.save());
}

TEST_CASE("checkpointer, mpi: a rank that rounds in another way, or flushes, cannot save; all ranks are told") {
  const shared_scratch dir;
  gs::parameter_store store = make(on_all(), 1, 7);
  gs::checkpointer checkpoints(store, dir / "run");
  const int odd = mpi_world::ranks() - 1;
  for (const bool flushes : {false, true}) {
    if (flushes && !float_modes::can_flush) continue;
    std::optional<float_modes::mode> here;
    if (mpi_world::rank() == odd) here.emplace(flushes ? FE_TONEAREST : FE_TOWARDZERO, flushes ? float_modes::flush_results : 0);
    const std::string said = complaint_of_all([&] { checkpoints.save(); });
    CAPTURE(said);
    CHECK(contains(said, flushes ? "it is rounding to nearest, subnormal results become 0" : "it is rounding toward zero"));
    if (mpi_world::rank() != odd) CHECK(said.starts_with("rank " + std::to_string(odd) + " failed: "));
  }
  CHECK(checkpoints.save());
}

TEST_CASE("checkpointer, mpi: one rank cannot write: all go on, or all stop") {
  const shared_scratch dir;
  gs::parameter_store store = make(on_all(), 1, 7);
  texts said;
  gs::checkpointer checkpoints(store, dir / "run", telling(said, {.every_steps = 1}));
  CHECK(checkpoints.save());
  for (int rank = 0; rank < mpi_world::ranks(); ++rank) {
    said.clear();
    set_step(store, 8);
    {
      std::optional<small_disk> full;
      if (mpi_world::rank() == rank) full.emplace(1000);
      CHECK_FALSE(checkpoints.save());
      CHECK(said.size() == (is_leader() ? 1u : 0u));
      if (is_leader()) CHECK(contains(said[0], "File too large"));
      gs::checkpointer strict(store, dir / "strict", {.on_failure = gs::checkpointer_options::failure::stop});
      CHECK(contains(complaint_of_all([&] { strict.save(); }), "File too large"));
    }
    set_step(store, 7);
    MPI_Barrier(MPI_COMM_WORLD);
    gs::parameter_store other = make(on_all(), 5);
    CHECK(gs::checkpointer(other, dir / "run").resume()->step == 7);
    CHECK(is_step(other, 7));
  }
  set_step(store, 9);
  CHECK(checkpoints.save());
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(names_in(dir / "run") == texts{"latest", "step-0000000007", "step-0000000009"});
}

TEST_CASE("checkpointer, mpi: a damaged part makes all ranks take the one before") {
  const shared_scratch dir;
  gs::parameter_store store = make(on_all(), 1, 7);
  gs::checkpointer checkpoints(store, dir / "run");
  CHECK(checkpoints.save());
  set_step(store, 8);
  CHECK(checkpoints.save());
  MPI_Barrier(MPI_COMM_WORLD);
  for (int rank = 0; rank < mpi_world::ranks(); ++rank)
    for (const bool in_header : {true, false}) {
      const std::string path = dir / ("run/step-0000000008/" + gs::detail::part_name(std::size_t(rank)));
      std::string content;
      if (is_leader()) {
        std::string bad = content = content_of(path);
        const std::size_t at = in_header ? 100 : content.size() - 1;
        bad[at] = char(bad[at] ^ 1);
        set_content(path, bad);
      }
      MPI_Barrier(MPI_COMM_WORLD);
      texts said;
      gs::parameter_store other = make(on_all(), 5);
      const auto back = gs::checkpointer(other, dir / "run", telling(said)).resume();
      REQUIRE(back.has_value());
      CHECK(back->step == 7);
      CHECK(back->refused.size() == 1);
      CHECK(is_step(other, 7));
      MPI_Barrier(MPI_COMM_WORLD);
      if (is_leader()) set_content(path, content);
    }
}

TEST_CASE("checkpointer, mpi: directories that are not the same need per_host") {
  if (mpi_world::ranks() == 1) return;
  const disks own;
  texts said;
  gs::parameter_store store = make(on_all(), 1, 7);
  gs::checkpointer checkpoints(store, own.mine(), telling(said));
  CHECK_FALSE(checkpoints.save());
  if (is_leader()) CHECK(contains(said.back(), "it is not in the leader's directory; checkpointer_options::per_host"));
}

TEST_CASE("checkpointer, mpi: the disk of any one host may be lost") {
  for (const int per_disk : {1, 2}) {
    const int hosts = (mpi_world::ranks() + per_disk - 1) / per_disk;
    for (int lost = -1; lost < hosts; ++lost) {
      if (hosts == 1 && lost == 0) continue;
      disks own;
      texts said;
      CAPTURE(per_disk);
      CAPTURE(lost);
      const gs::checkpointer_options options{.every_steps = 1, .per_host = true};
      {
        gs::parameter_store store = make(on_all());
        gs::checkpointer checkpoints(store, own.mine(per_disk), telling(said, options));
        CHECK_FALSE(checkpoints.resume().has_value());
        run(store, checkpoints, 1, 5);
        CHECK(said.size() == (is_leader() && hosts == 1 && mpi_world::ranks() > 1 ? 1u : 0u));
      }
      MPI_Barrier(MPI_COMM_WORLD);
      CHECK(names_in(own.mine(per_disk)) == texts{"latest", "step-0000000004", "step-0000000005"});
      std::int64_t total = 0;
      for (const auto& entry : fs::directory_iterator(own.mine(per_disk) + "/latest/"))
        if (entry.path().extension() == ".bin") total += std::int64_t(entry.file_size());
      MPI_Allreduce(MPI_IN_PLACE, &total, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
      if (lost >= 0) own.lose(lost);
      said.clear();
      gs::parameter_store store = make(on_all(), 77);
      gs::checkpointer checkpoints(store, own.mine(per_disk), telling(said, options));
      const auto back = checkpoints.resume();
      REQUIRE(back.has_value());
      CHECK(back->step == 5);
      CHECK(back->refused.empty());
      CHECK(is_step(store, 5));
      run(store, checkpoints, 6, 7);  // the run continues on an empty disk
      checkpoints.finish();
      MPI_Barrier(MPI_COMM_WORLD);
      CHECK(names_in(own.mine(per_disk)) == texts{"finished", "latest", "step-0000000006", "step-0000000007"});
    }
  }
}

TEST_CASE("checkpointer, mpi: a run that has one of the directories is known to all ranks") {
  gs::parameter_store store = make(on_all(), 1, 7);
  for (const bool per_host : {false, true})
    for (int rank = 0; rank < (per_host ? mpi_world::ranks() : 1); ++rank) {
      CAPTURE(per_host);
      CAPTURE(rank);
      const disks own;
      const std::string path = per_host ? own.mine() : own.dir / "run";
      const gs::checkpointer_options options{.per_host = per_host, .lock_seconds = 0};
      {
        std::optional<other_run> other;
        if (mpi_world::rank() == rank) other.emplace(path);
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK(contains(complaint_of_all([&] { gs::checkpointer(store, path, options); }), "another run uses this directory: process "));
        MPI_Barrier(MPI_COMM_WORLD);
      }
      MPI_Barrier(MPI_COMM_WORLD);
      texts said;
      gs::checkpointer checkpoints(store, path, telling(said, options));  // no rank has kept a lock of the attempt
      CHECK(checkpoints.save());
    }
}

TEST_CASE("checkpointer, mpi: a manifest that the leader cannot make fails on all hosts") {
  const disks own;
  texts said;
  gs::parameter_store store = make(on_all(), 1, 7);
  {
    gs::checkpointer checkpoints(store, own.mine(), telling(said, {.per_host = true}));
    checkpoints.keep_state("Andr\xe9", [] { return std::string(); }, [](std::string_view) {});
    CHECK_FALSE(checkpoints.save());
    if (is_leader()) CHECK(contains(said.back(), "is not UTF-8"));
  }
  gs::checkpointer others(store, own.mine(), telling(said, {.per_host = true}));
  CHECK(others.save());
}

// As if a host had been away: its disk has a checkpoint of the same step, and no other disk has a part of it.
TEST_CASE("checkpointer, mpi: a manifest whose parts are not all there does not hide another one of that step") {
  if (mpi_world::ranks() < 2) return;
  const disks own;
  texts said;
  gs::parameter_store store = make(on_all(), 1, 7), away = make(on_all(), 1, 8);
  away.set_steps(7);
  for (const bool is_away : {true, false}) {
    gs::checkpointer checkpoints(is_away ? away : store, own.mine() + (is_away ? "-away" : ""), telling(said, {.per_host = true}));
    CHECK(checkpoints.save());
  }
  const std::string step = "/step-0000000007";
  fs::create_directories(own.mine() + "-good");
  fs::copy(own.mine() + step, own.mine() + "-good" + step);
  for (int rank = 0; rank < mpi_world::ranks(); ++rank) {
    CAPTURE(rank);
    fs::remove_all(own.mine() + step);
    fs::copy(own.mine() + (rank == mpi_world::rank() ? "-away" : "-good") + step, own.mine() + step);
    if (rank == mpi_world::rank()) fs::remove(own.mine() + step + "/" + gs::detail::part_name(std::size_t(rank)));
    MPI_Barrier(MPI_COMM_WORLD);
    gs::parameter_store back = make(on_all(), 77);
    gs::checkpointer checkpoints(back, own.mine(), telling(said, {.per_host = true}));
    CHECK(checkpoints.resume()->refused.empty());
    CHECK(is_step(back, 7));
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("checkpointer, mpi: two lost disks, or a damaged block on one disk") {
  if (mpi_world::ranks() < 3) return;
  disks own;
  texts said;
  const gs::checkpointer_options options{.every_steps = 1, .per_host = true};
  {
    gs::parameter_store store = make(on_all());
    gs::checkpointer checkpoints(store, own.mine(), telling(said, options));
    run(store, checkpoints, 1, 2);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const std::string part = own.mine() + "/step-0000000002/" + gs::detail::part_name(std::size_t(mpi_world::rank()));
  std::string content = content_of(part);
  content.back() = char(content.back() ^ 1);
  set_content(part, content);  // every rank's own part; the copies are good
  MPI_Barrier(MPI_COMM_WORLD);
  {
    gs::parameter_store store = make(on_all(), 77);
    CHECK(gs::checkpointer(store, own.mine(), telling(said, options)).resume()->step == 2);
    CHECK(is_step(store, 2));
  }
  own.lose(0);
  own.lose(1);
  gs::parameter_store store = make(on_all(), 78);
  CHECK(contains(complaint_of_all([&] { gs::checkpointer(store, own.mine(), telling(said, options)).resume(); }), "checkpoints is valid"));
  CHECK(is_step(store, 0));
}

TEST_CASE("checkpointer, mpi: signatures are the leader's") {
  const shared_scratch dir;
  std::optional<gs::signing_key> key;
  if (is_leader()) {
    keys::write(dir / "key", std::string(32, 'k'));
    key = gs::signing_key::hmac(dir / "key");
  }
  gs::parameter_store store = make(on_all(), 1, 7);
  CHECK(gs::checkpointer(store, dir / "run", {.key = key}).save());
  CHECK(gs::checkpointer(store, dir / "run", {.key = key, .require_signature = true}).resume()->step == 7);
  MPI_Barrier(MPI_COMM_WORLD);
  if (is_leader()) fs::remove(dir / "run/latest/manifest.sig");
  MPI_Barrier(MPI_COMM_WORLD);
  texts said;
  CHECK(contains(
      complaint_of_all([&] { gs::checkpointer(store, dir / "run", telling(said, {.key = key, .require_signature = true})).resume(); }),
      "is not signed"));
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/cluster/mpi.hpp>
#include <gshard/core/base/hash.hpp>
#include <gshard/exec/backend/balanced_extents.hpp>
#include <gshard/io/checkpoint.hpp>

#include "../mpi_world.hpp"
#include "scratch.hpp"
#include "spoilt_stores.hpp"
#include "stores.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gs = gshard;

namespace {

bool is_leader() { return mpi_world::rank() == 0; }
gs::any_cluster on_world(const std::vector<int>& extents) {
  return {stores::shape_of(extents), std::make_shared<gs::mpi_backend>(MPI_COMM_WORLD, extents)};
}
std::vector<std::vector<int>> meshes() {
  return {{mpi_world::ranks()}, gs::balanced_extents(mpi_world::ranks(), std::vector(2, gs::dynamic))};
}

/// A directory that only the leader knows.
struct leaders_scratch {
  std::optional<scratch> dir;
  leaders_scratch() {
    if (is_leader()) dir.emplace();
  }
  ~leaders_scratch() { MPI_Barrier(MPI_COMM_WORLD); }
  std::string operator/(const std::string& name) const { return dir ? *dir / name : "/nowhere/" + name; }
};

/// The text of the error, which is the same on all ranks, or nothing.
template <class F>
std::string same_complaint(F f) {
  const std::string said = complaint(f);
  const std::uint64_t hash = gs::fnv1a<std::uint64_t>().add(said).value();
  std::uint64_t most[2], both[] = {hash, ~hash};
  MPI_Allreduce(both, most, 2, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
  CHECK(most[0] == hash);
  CHECK(most[1] == ~hash);
  return said;
}

constexpr gs::checkpoint_options everything{.scope = gs::checkpoint_scope::everything};

}  // namespace

TEST_CASE("on_leader, mpi: every rank gets the text that the leader makes, or its error") {
  const gs::any_cluster on = on_world({mpi_world::ranks()});
  bool called = false;
  CHECK(gs::on_leader(on, [&] { return (called = true, std::string("made\0here", 9)); }) == std::string("made\0here", 9));
  CHECK(called == is_leader());
  CHECK(same_complaint([&] { gs::on_leader(on, [] { throw gs::error("no file"); }); }) == "no file");
}

TEST_CASE("checkpoint, mpi: the file is the one of a simulated mesh, and loads on any other") {
  const leaders_scratch dir;
  const gs::checkpoint_notes notes{{{"step", "3"}, {"x", ""}}, {{"blob", std::string("\0\xff", 2)}}};
  for (const std::vector<int>& mesh : meshes())
    for (std::uint64_t seed = 0; seed < 4; ++seed)
      for (const std::int64_t piece_bytes : {1, 64, 1 << 20}) {
        CAPTURE(gs::detail::mesh_text(mesh));
        CAPTURE(seed);
        const gs::checkpoint_options options{.scope = gs::checkpoint_scope::everything,
                                             .piece_bytes = piece_bytes};
        gs::parameter_store store = stores::make(on_world(mesh), stores::usual(), seed);
        stores::fill(store);
        gs::save(store, dir / "f", is_leader() ? notes : gs::checkpoint_notes{}, options);
        if (is_leader()) {
          gs::parameter_store simulated =
              stores::make(stores::simulated({2, 3}), stores::usual(), seed + 50);
          stores::fill(simulated);
          gs::save(simulated, dir / "g", notes, options);
          CHECK(content_of(dir / "f") == content_of(dir / "g"));
          stores::clear(simulated);
          gs::load(simulated, dir / "f", options);
          CHECK(stores::wrong(simulated) == 0);
        }
        gs::parameter_store other =
            stores::make(on_world({1, mpi_world::ranks()}), stores::usual(), seed + 100);
        stores::clear(other);
        const gs::checkpoint_notes back = gs::load(other, dir / "g", options);
        CHECK(stores::wrong(other) == 0);
        CHECK(back.metadata == notes.metadata);
        CHECK(back.blobs == notes.blobs);
        CHECK(gs::load_notes(other.cluster(), dir / "f").blobs == notes.blobs);
      }
}

TEST_CASE("checkpoint, mpi: if the leader cannot write, all ranks say so") {
  const leaders_scratch dir;
  gs::parameter_store store = stores::make(on_world({mpi_world::ranks()}), stores::usual(), 1);
  stores::fill(store);
  CHECK(contains(same_complaint([&] { gs::save(store, dir / "none/f"); }), "No such file or directory"));
  gs::save(store, dir / "f", {}, everything);
  const std::string before = content_of(dir / "f");
  for (std::size_t bytes = 0; bytes < 900; bytes += 50) {
    std::string said;
    {
      std::optional<small_disk> disk;
      if (is_leader()) disk.emplace(bytes);
      said = complaint([&] {
        gs::save(store, dir / "f", {}, {.scope = gs::checkpoint_scope::everything, .piece_bytes = 8});
      });
    }
    CHECK(contains(same_complaint([&] {
                     if (!said.empty()) throw gs::error(said);
                   }),
                   "File too large"));
    if (is_leader()) {
      CHECK(content_of(dir / "f") == before);
      CHECK(dir.dir->entries() == 1);
    }
  }
  gs::save(store, dir / "f", {}, everything);  // and the communicator still works
}

TEST_CASE("checkpoint, mpi: if the file is damaged or does not fit, all ranks say so, and nothing changes") {
  const leaders_scratch dir;
  gs::parameter_store store = stores::make(on_world({mpi_world::ranks()}), stores::usual(), 1);
  stores::fill(store);
  gs::save(store, dir / "f");
  if (is_leader()) {
    std::string content = content_of(dir / "f");
    content[content.size() - 3] ^= 1;
    set_content(dir / "damaged", content);
  }
  stores::clear(store);
  CHECK(contains(same_complaint([&] { gs::load(store, dir / "damaged"); }), "is damaged"));
  CHECK(contains(same_complaint([&] { gs::load(store, dir / "none"); }), "No such file"));
  CHECK(contains(same_complaint([&] { gs::load(store, dir / "f", everything); }),
                 "\"state:adam.m.bias\" is missing"));
  CHECK(contains(same_complaint([&] { gs::load_notes(store.cluster(), dir / "damaged"); }), "is damaged"));
  CHECK(stores::written(store) == 0);
  gs::load(store, dir / "f");
  CHECK(stores::written(store) > 0);
}

TEST_CASE(
    "checkpoint, mpi: processes with different tensors, layouts or options are told, before anything is "
    "sent") {
  if (mpi_world::ranks() < 2) return;
  const leaders_scratch dir;
  const gs::any_cluster on = on_world({mpi_world::ranks()});
  gs::parameter_store store = stores::make(on, stores::usual(), 1);
  const auto one = [&](const stores::tensor_case& t, bool cut) {
    gs::parameter_store s(on);
    gs::sharding layout = gs::sharding::replicated(int(t.extents.size()));
    if (cut) layout[0].push_back(0);
    stores::add(s, t, layout);
    return s;
  };
  const std::string others = mpi_world::ranks() == 2 ? "rank 1 has " : "ranks 1 ";
  const auto refused = [&](gs::parameter_store s, const std::string& what, const gs::checkpoint_options& options = {}) {
    const std::string saved = same_complaint([&] { gs::save(s, dir / "f", {}, options); });
    CAPTURE(saved);
    CHECK(contains(saved, ": save of a checkpoint: the processes disagree"));
    CHECK(contains(saved, what));
    CHECK(contains(saved, others));
    const std::string loaded = same_complaint([&] { gs::load(s, dir / "f", options); });
    CHECK(contains(loaded, ": load of a checkpoint: the processes disagree"));
    CHECK(contains(loaded, what));
  };
  refused(one({is_leader() ? "a" : "b", gs::dtype::f32, {4}}, false), "rank 0 has tensor \"a\" f32[4], ");
  refused(one({"a", is_leader() ? gs::dtype::f32 : gs::dtype::i32, {4}}, false), "tensor \"a\": rank 0 has f32[4], ");
  refused(one({"a", gs::dtype::f32, {is_leader() ? 4 : 5}}, false), "tensor \"a\": rank 0 has f32[4], ");
  refused(one({"a", gs::dtype::f32, {4}}, is_leader()), "tensor \"a\": rank 0 has f32[4@");
  std::vector<int> turned;
  for (int d = 1; d <= mpi_world::ranks(); ++d) turned.push_back(d % mpi_world::ranks());
  gs::sharding rows = gs::sharding::replicated(1);
  rows[0].push_back(0);
  gs::parameter_store ordered(on);
  stores::add(ordered, {"a", gs::dtype::f32, {4}}, rows, is_leader() ? turned : std::vector<int>{});
  refused(ordered, "in the device order 1 ");
  refused(store, "checkpoint_options::scope: rank 0 has everything, ",
          {.scope = is_leader() ? gs::checkpoint_scope::everything : gs::checkpoint_scope::parameters});
  refused(store, "checkpoint_options::piece_bytes: rank 0 has 10, ", {.piece_bytes = is_leader() ? 10 : 20});
}

TEST_CASE("mpi: checkpoints refuse NaN, infinities, and copies that differ") {
  const auto exists = [](const std::string& path) {
    int is_there = is_leader() && std::filesystem::exists(path) ? 1 : 0;
    MPI_Bcast(&is_there, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return is_there != 0;
  };
  for (const std::vector<int>& mesh : meshes()) {
    const leaders_scratch dir;
    spoilt_stores::check_not_finite(on_world(mesh), dir / "f", exists);
    spoilt_stores::check_allowed(on_world(mesh), dir / "g");
    spoilt_stores::check_copies(on_world(mesh), dir / "h");
  }
}

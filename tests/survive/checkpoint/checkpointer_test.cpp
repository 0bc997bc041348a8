// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/checkpoint/checkpointer.hpp>

#include "../../exec/backend/float_modes.hpp"
#include "../../io/scratch.hpp"
#include "../keys.hpp"
#include "../other_process.hpp"
#include "../run_stores.hpp"

#include <doctest/doctest.h>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cfenv>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace gs = gshard;
namespace fs = std::filesystem;

namespace {

using namespace run_stores;

gs::parameter_store store_on(const std::vector<int>& mesh, std::uint64_t seed = 1, std::uint32_t step = 0) {
  return make(stores::simulated(mesh), seed, step);
}
/// Runs steps first to last, without computing.
void run(gs::parameter_store& store, gs::checkpointer& checkpoints, std::uint32_t first, std::uint32_t last) {
  for (std::uint32_t step = first; step <= last; ++step) {
    set_step(store, step);
    REQUIRE(checkpoints.after_step());
    while (checkpoints.in_flight()) checkpoints.after_step();
  }
}
void flip_byte(const std::string& path, std::size_t at) {
  std::string content = content_of(path);
  content[at] = char(content[at] ^ 1);
  set_content(path, content);
}

}  // namespace

TEST_CASE("checkpointer: saved on one mesh, loaded on another: the same bytes") {
  std::vector<std::vector<int>> meshes{{1}, {2}, {3}, {4}, {6}, {8}, {2, 3}, {2, 2, 2}};
  for (std::size_t from = 0; from < meshes.size(); ++from) {
    const scratch dir;
    {
      gs::parameter_store store = store_on(meshes[from], from, 7);
      gs::checkpointer checkpoints(store, dir / "run");
      CHECK(checkpoints.save());
    }
    for (std::size_t to = 0; to < meshes.size(); ++to) {
      CAPTURE(from);
      CAPTURE(to);
      gs::parameter_store store = store_on(meshes[to], 100 + to);
      gs::checkpointer checkpoints(store, dir / "run");
      const auto back = checkpoints.resume();
      REQUIRE(back.has_value());
      CHECK(back->step == 7);
      CHECK(back->name == "step-0000000007");
      CHECK(back->refused.empty());
      CHECK(is_step(store, 7));
    }
  }
}

TEST_CASE("checkpointer: caches are in no checkpoint; a program that has some may be bound before or after") {
  const stores::tensor_case cache{"decoder.cache", gs::dtype::f32, {64, 3}, false, true};
  for (const bool saved_with : {false, true})
    for (const bool loaded_with : {false, true}) {
      CAPTURE(saved_with);
      CAPTURE(loaded_with);
      const scratch dir;
      {
        gs::parameter_store store = store_on({2}, 1, 7);
        if (saved_with) stores::add(store, cache, gs::sharding::replicated(2));
        gs::checkpointer checkpoints(store, dir / "run", {.every_steps = 1});
        CHECK(checkpoints.save());
        // A decoding program runs between two checkpoints.
        if (!saved_with) stores::add(store, cache, gs::sharding::replicated(2));
        for (std::byte* const shard : store.find(cache.name)->value.data) std::memset(shard, 9, 64 * 3 * 4);
        store.set_steps(8);
        CHECK(checkpoints.save());
      }
      gs::parameter_store store = store_on({3}, 2, 1);
      if (loaded_with) {
        const gs::parameter_store::entry& e = stores::add(store, cache, gs::sharding::replicated(2));
        for (std::byte* const shard : e.value.data) std::memset(shard, 5, 64 * 3 * 4);
      }
      gs::checkpointer checkpoints(store, dir / "run");
      const auto back = checkpoints.resume();
      REQUIRE(back.has_value());
      CHECK(back->step == 8);
      if (loaded_with) {
        for (const std::byte* const shard : store.find(cache.name)->value.data)
          CHECK(std::all_of(shard, shard + 64 * 3 * 4, [](std::byte b) { return b == std::byte{5}; }));
        store.forget(cache.name);
      }
      store.set_steps(7);  // the step of the tensors
      CHECK(is_step(store, 7));
    }
}

TEST_CASE("checkpointer: files are the owner's alone, whatever the umask") {
  const scratch dir;
  const mode_t before = ::umask(0);
  gs::parameter_store store = store_on({2}, 1, 7);
  keys::write(dir / "key", std::string(32, 'k'));
  gs::checkpointer checkpoints(store, dir / "a/run", {.key = gs::signing_key::hmac(dir / "key")});
  CHECK(checkpoints.save());
  checkpoints.finish();
  ::umask(before);
  CHECK(names_in(dir / "a/run") == texts{"finished", "latest", "step-0000000007"});
  CHECK(names_in(dir / "a/run/latest/") == texts{"manifest.json", "manifest.sig", "part-00000.bin", "part-00001.bin"});
  for (const auto& entry : fs::recursive_directory_iterator(dir / "a"))
    if (!entry.is_symlink()) CHECK(entry.status().permissions() == fs::perms(entry.is_directory() ? 0700 : 0600));
  CHECK(fs::read_symlink(dir / "a/run/latest") == "step-0000000007");
  CHECK(content_of(dir / "a/run/finished") == "finished at step 7\n");
}

TEST_CASE("checkpointer: by steps; keeps the newest ones") {
  const scratch dir;
  gs::parameter_store store = store_on({2});
  {
    gs::checkpointer checkpoints(store, dir / "run", {.every_steps = 10, .keep = 3});
    CHECK_FALSE(checkpoints.resume().has_value());
    run(store, checkpoints, 1, 55);
    CHECK(checkpoints.last() == dir / "run/step-0000000050");
  }
  CHECK(names_in(dir / "run") == texts{"latest", "step-0000000030", "step-0000000040", "step-0000000050"});
  CHECK(fs::read_symlink(dir / "run/latest") == "step-0000000050");

  gs::parameter_store again = store_on({3});
  gs::checkpointer checkpoints(again, dir / "run", {.every_steps = 10, .keep = 2});
  CHECK(checkpoints.resume()->step == 50);
  CHECK(is_step(again, 50));
  run(again, checkpoints, 51, 60);
  CHECK(names_in(dir / "run") == texts{"latest", "step-0000000050", "step-0000000060"});
}

TEST_CASE("checkpointer: a save that comes due while one is in flight follows it") {
  const scratch dir;
  gs::parameter_store store = store_on({2});
  gs::checkpointer checkpoints(store, dir / "run", {.every_steps = 1, .keep = 100});
  std::uint32_t step = 0;
  bool overlapped = false;
  while (step < 20 || !overlapped) {
    const bool before = checkpoints.in_flight();
    set_step(store, ++step);
    checkpoints.after_step();
    overlapped = overlapped || (before && checkpoints.in_flight());
    REQUIRE(step < 100000);
  }
  checkpoints.finish();
  CHECK(checkpoints.last().ends_with("step-" + std::string(10 - std::to_string(step).size(), '0') + std::to_string(step)));
  for (const std::string& name : names_in(dir / "run")) {
    if (!name.starts_with("step-")) continue;
    const gs::manifest m = gs::detail::parse_manifest(content_of(dir / ("run/" + name + "/manifest.json")));
    gs::parameter_store other = store_on({1});
    const scratch alone;
    fs::copy(dir / ("run/" + name), alone / name);
    gs::checkpointer reader(other, alone / "");
    CHECK(reader.resume()->step == m.step);
    CHECK(is_step(other, m.step));
  }
}

TEST_CASE("checkpointer: by time") {
  const scratch dir;
  gs::parameter_store store = store_on({2});
  gs::checkpointer checkpoints(store, dir / "run", {.every_seconds = 0.02});
  run(store, checkpoints, 1, 1);
  for (std::uint32_t step = 2; checkpoints.last().empty(); ++step) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    run(store, checkpoints, step, step);
  }
  CHECK(names_in(dir / "run").size() >= 2);
}

TEST_CASE("checkpointer: states of the program, and the event log") {
  const scratch dir;
  std::string position = std::string("17\0\xff", 4);
  {
    gs::parameter_store store = store_on({2}, 1, 7);
    gs::checkpointer checkpoints(store, dir / "run", {.settings = {{"rate", "0.1"}}});
    checkpoints.keep_state(
        "position", [&] { return position; }, [](std::string_view) {});
    gs::event_log events(store.cluster(), dir / "run");
    checkpoints.log_to(events);
    CHECK(checkpoints.save());
    const gs::manifest m = gs::detail::parse_manifest(content_of(dir / "run/latest/manifest.json"));
    REQUIRE(m.event_logs.size() == 1);
    CHECK(m.event_logs[0].records == 2);  // start and mesh
    CHECK(events.head().records == 3);    // and the checkpoint
    CHECK(gs::check_event_log(events.path(), m.event_logs).unaltered);
    CHECK(m.step == 7);
    CHECK(m.library == gs::version);
    CHECK(m.mesh == std::vector<std::pair<std::string, int>>{{"a", 2}});
    CHECK(m.settings.at("rate") == "0.1");
  }
  gs::parameter_store store = store_on({3});
  const auto said = [&](const gs::checkpointer_options& options, const std::string& state) {
    return complaint([&] {
      gs::checkpointer checkpoints(store, dir / "run", options);
      if (!state.empty())
        checkpoints.keep_state(
            state, [] { return ""; }, [&](std::string_view t) { position = t; });
      checkpoints.resume();
    });
  };
  position = "";
  const std::string name = dir / "run/step-0000000007: does not fit: ";
  CHECK(said({}, "position") == name + "setting \"rate\" is \"0.1\" there and missing here");
  CHECK(said({.settings = {{"rate", "0.2"}}}, "position") == name + "setting \"rate\" is \"0.1\" there and \"0.2\" here");
  CHECK(said({.settings = {{"rate", "0.1"}, {"x", ""}}}, "position") == name + "setting \"x\" is missing there and \"\" here");
  CHECK(said({.settings = {{"rate", "0.1"}}}, "other") == name + "it has no state \"other\"");
  CHECK(position == "");
  CHECK(is_step(store, 0));
  CHECK(said({.settings = {{"rate", "0.1"}}}, "position") == "");
  CHECK(position == std::string("17\0\xff", 4));
  CHECK(is_step(store, 7));
}

TEST_CASE("checkpointer: a state that the program does not keep is not lost") {
  const scratch dir;
  gs::parameter_store store = store_on({2}, 1, 7);
  {
    gs::checkpointer checkpoints(store, dir / "run");
    checkpoints.keep_state(
        "position", [] { return "17"; }, [](std::string_view) {});
    CHECK(checkpoints.save());
  }
  texts said;
  gs::checkpointer checkpoints(store, dir / "run", telling(said));
  CHECK(checkpoints.resume()->step == 7);  // a program may load it and ignore the state
  REQUIRE(said.size() == 1);
  CHECK(contains(said[0], "has a state \"position\" that the program does not keep: it is not restored, and the program cannot save"));
  set_step(store, 8);
  CHECK(contains(complaint([&] { checkpoints.save(); }),
                 "has a state \"position\" that the program does not keep, so that a save would lose it"));
  CHECK(names_in(dir / "run") == texts{"latest", "step-0000000007"});
  const auto keep = [&] {
    checkpoints.keep_state(
        "position", [] { return "18"; }, [](std::string_view) {});
  };
  CHECK(contains(complaint(keep), "keep_state(\"position\") after resume()"));
}

TEST_CASE("checkpointer: another store is refused, and stays as it is") {
  const scratch dir;
  {
    gs::parameter_store store = store_on({2}, 1, 7);
    CHECK(gs::checkpointer(store, dir / "run").save());
  }
  const auto said = [&](gs::parameter_store& store) { return complaint([&] { gs::checkpointer(store, dir / "run").resume(); }); };
  gs::parameter_store seeded(stores::simulated({2}), 5);
  CHECK(contains(said(seeded), "it was saved with seed 0, the store has seed 5"));
  gs::parameter_store other = store_on({2});
  other.forget("bias");
  stores::add(other, {"one more", gs::dtype::f32, {2}}, gs::sharding::replicated(1));
  other.forget("double");
  stores::add(other, {"double", gs::dtype::f32, {3, 5}}, gs::sharding::replicated(2));
  CHECK(contains(said(other),
                 "\"double\" is a parameter f64[3,5] in the checkpoint and a parameter f32[3,5] here, \"one more\" is missing, "
                 "\"bias\" in the checkpoint is unknown to the store; all programs must be bound to the store before it is loaded"));
  CHECK(other.steps() == 0);
}

TEST_CASE("checkpointer: falls back to the newest valid one, and says why") {
  const scratch dir;
  {
    gs::parameter_store store = store_on({2});
    gs::checkpointer checkpoints(store, dir / "run", {.every_steps = 1, .keep = 10});
    run(store, checkpoints, 1, 6);
  }
  flip_byte(dir / "run/step-0000000006/part-00001.bin", 20000);  // data
  flip_byte(dir / "run/step-0000000005/part-00000.bin", 100);    // a header
  flip_byte(dir / "run/step-0000000004/manifest.json", 100);
  fs::remove(dir / "run/step-0000000003/part-00001.bin");
  texts said;
  gs::parameter_store store = store_on({3});
  gs::checkpointer checkpoints(store, dir / "run", telling(said, {.every_steps = 1, .keep = 2}));
  const auto back = checkpoints.resume();
  REQUIRE(back.has_value());
  CHECK(back->step == 2);
  CHECK(is_step(store, 2));
  REQUIRE(back->refused.size() == 4);
  REQUIRE(said.size() == 4);
  CHECK(contains(back->refused[0], "step-0000000006: "));
  CHECK(contains(back->refused[0], "are not what was written"));
  CHECK(contains(back->refused[1], "its header is not the one that the manifest knows"));
  CHECK(contains(back->refused[2], "is damaged"));
  CHECK(contains(back->refused[3], "No such file"));
  CHECK(said[0].starts_with("gshard: checkpoint " + (dir / "run/step-0000000006") + " is refused: "));

  run(store, checkpoints, 3, 4);  // these names exist; damaged ones are removed when their steps are done again
  CHECK(names_in(dir / "run") == texts{"latest", "step-0000000003.1", "step-0000000004.1", "step-0000000005", "step-0000000006"});
  gs::parameter_store again = store_on({2});
  CHECK(gs::checkpointer(again, dir / "run", telling(said)).resume()->name == "step-0000000004.1");
  run(store, checkpoints, 5, 6);
  CHECK(names_in(dir / "run") == texts{"latest", "step-0000000005.1", "step-0000000006.1"});
}

TEST_CASE("checkpointer: whatever is in place of a file of the newest checkpoint is reported, and waits for nobody") {
  using make = std::function<void(const std::string&)>;
  const std::vector<std::pair<const char*, make>> others{
      {"a directory", [](const std::string& at) { fs::create_directory(at); }},
      {"a directory with a file", [](const std::string& at) { fs::create_directory(at), set_content(at + "/mine", "1"); }},
      {"a link to an endless device", [](const std::string& at) { fs::create_symlink("/dev/zero", at); }},
      {"a link to nothing", [](const std::string& at) { fs::create_symlink("nowhere", at); }},
      {"a link to itself", [](const std::string& at) { fs::create_symlink(at, at); }},
      {"a link to what was there", [](const std::string& at) { fs::create_symlink(at + ".before", at); }},
      {"a pipe", [](const std::string& at) { REQUIRE(::mkfifo(at.c_str(), 0600) == 0); }},
      {"a socket",
       [](const std::string& at) {
         sockaddr_un name{};
         name.sun_family = AF_UNIX;
         const int socket = ::socket(AF_UNIX, SOCK_DGRAM, 0);
         fs::current_path(fs::path(at).parent_path());  // the name of a socket is short
         const std::string file = fs::path(at).filename();
         file.copy(name.sun_path, sizeof name.sun_path - 1);
         REQUIRE(::bind(socket, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0);
         ::close(socket);
       }},
      {"an empty file", [](const std::string& at) { set_content(at, ""); }},
      {"a line", [](const std::string& at) { set_content(at, "{\n"); }},
  };
  const fs::path here = fs::current_path();
  for (const std::string name : {"/manifest.json", "/part-00000.bin", "/part-00001.bin", ""})
    for (const auto& [kind, other] : others) {
      CAPTURE(name);
      CAPTURE(kind);
      const scratch dir;
      {
        gs::parameter_store store = store_on({2});
        gs::checkpointer checkpoints(store, dir / "run", {.every_steps = 1});
        run(store, checkpoints, 1, 2);
      }
      const std::string newest = dir / "run/step-0000000002";
      fs::rename(newest + name, newest + name + ".before");
      other(newest + name);
      fs::current_path(here);
      const bool empty_directory = name.empty() && std::string_view(kind).starts_with("a directory");  // of an unfinished save
      texts said;
      gs::parameter_store store = store_on({3});
      gs::checkpointer checkpoints(store, dir / "run", telling(said, {.every_steps = 1}));
      const auto back = checkpoints.resume();
      REQUIRE(back.has_value());
      CHECK(back->step == 1);
      CHECK(is_step(store, 1));
      CHECK(back->refused.size() == (empty_directory ? 0 : 1));
      CHECK(said.size() == (empty_directory ? 0 : 1));
      if (!empty_directory) CHECK(contains(said[0], "checkpoint " + newest + " is refused: "));
      run(store, checkpoints, 2, 3);  // the run continues, and leaves unknown files alone
      gs::parameter_store again = store_on({2});
      CHECK(gs::checkpointer(again, dir / "run", telling(said)).resume()->step == 3);
      if (kind == std::string("a directory with a file")) CHECK(content_of(newest + name + "/mine") == "1");
    }
}

TEST_CASE("checkpointer: pipes and directories at its other names are told, and wait for nobody") {
  for (const bool is_pipe : {false, true})
    for (const std::string name : {".lock", "latest", "finished", "manifest.sig"}) {
      CAPTURE(name);
      CAPTURE(is_pipe);
      const scratch dir;
      const std::string at = dir / (name == "manifest.sig" ? "run/step-0000000007/" + name : "run/" + name);
      fs::create_directories(fs::path(at).parent_path());
      if (name == "manifest.sig") {
        fs::remove(dir / "run/step-0000000007");
        CHECK(gs::checkpointer(store_on({2}, 1, 7), dir / "run").save());
      }
      if (is_pipe) REQUIRE(::mkfifo(at.c_str(), 0600) == 0);
      else fs::create_directory(at);
      texts said;
      gs::parameter_store store = store_on({2}, 1, 7);
      gs::checkpointer checkpoints(store, dir / "run", telling(said));
      const std::string problem = complaint([&] {
        checkpoints.resume();
        checkpoints.save();
        checkpoints.finish();
      });
      const std::string all = problem + (said.empty() ? "" : said[0]);
      CAPTURE(all);
      CHECK(contains(all, name));
    }
}

TEST_CASE("checkpointer: if none is valid, that is an error, not a new run") {
  const scratch dir;
  {
    gs::parameter_store store = store_on({2}, 1, 7);
    CHECK(gs::checkpointer(store, dir / "run").save());
  }
  flip_byte(dir / "run/latest/part-00001.bin", 20000);
  texts said;
  gs::parameter_store store = store_on({2}, 1, 3);
  gs::checkpointer checkpoints(store, dir / "run", telling(said));
  CHECK(contains(complaint([&] { checkpoints.resume(); }), "none of its 1 checkpoints is valid; the newest is step-0000000007: "));
  CHECK(is_step(store, 3));
}

TEST_CASE("checkpointer: a run that does not ask for older checkpoints does not mix with them") {
  const scratch dir;
  {
    gs::parameter_store store = store_on({2}, 1, 7);
    CHECK(gs::checkpointer(store, dir / "run").save());
  }
  gs::parameter_store store = store_on({2}, 1, 3);
  gs::checkpointer checkpoints(store, dir / "run");
  CHECK(complaint([&] { checkpoints.save(); }) ==
        (dir / "run") + ": has checkpoints, the last is step-0000000007; call resume(), or use another directory");
  CHECK(names_in(dir / "run") == texts{"latest", "step-0000000007"});
}

TEST_CASE("checkpointer: every flipped bit of a small checkpoint is refused") {
  const scratch dir;
  gs::parameter_store store(stores::simulated({2}));
  stores::add(store, {"w", gs::dtype::f32, {3, 2}}, gs::sharding::replicated(2));
  stores::add(store, {"m.w", gs::dtype::f32, {3, 2}, false}, gs::sharding::replicated(2));
  CHECK(gs::checkpointer(store, dir / "run").save());
  texts said;
  for (const char* name : {"manifest.json", "part-00000.bin", "part-00001.bin"}) {
    const std::string path = dir / ("run/latest/") + name, good = content_of(path);
    const auto is_refused = [&](const std::string& content) {
      set_content(path, content);
      return !complaint([&] { gs::checkpointer(store, dir / "run", telling(said)).resume(); }).empty();
    };
    for (std::size_t i = 0; i < good.size(); ++i) {
      std::string bad = good;
      bad[i] = char(bad[i] ^ (1 << (i % 8)));
      if (!is_refused(bad)) FAIL_CHECK(name << ": byte " << i << " may change");
      if (!is_refused(good.substr(0, i))) FAIL_CHECK(name << ": the file may end at byte " << i);
    }
    CHECK_FALSE(is_refused(good));
  }
}

TEST_CASE("checkpointer: blocks that overlap, leave holes, or are of other tensors are refused, with right hashes") {
  const scratch dir;
  const gs::detail::directory in = gs::detail::directory::made(dir / "run/step-0000000001");
  gs::parameter_store store(stores::simulated({1}));
  stores::add(store, {"w", gs::dtype::f32, {4}}, gs::sharding::replicated(1));
  set_step(store, 0);
  const auto said = [&](const std::vector<std::pair<int, int>>& blocks, const std::string& name) {
    std::vector<gs::detail::saved_tensor> tensors{{name, gs::dtype::f32, {4}, true}};
    std::vector<gs::detail::planned_block> planned;
    std::vector<std::byte> data;
    for (const auto& [first, last] : blocks) {
      gs::detail::planned_block b;
      b.at.rank = 1;
      b.at.offset[0] = first;
      b.at.extent[0] = last - first;
      b.at.global[0] = 4;
      b.in_part = std::int64_t(data.size());
      b.bytes = 4 * (last - first);
      data.resize(data.size() + std::size_t(b.bytes));
      planned.push_back(b);
    }
    gs::manifest m;
    m.step = 1;
    m.tensors = {{"w", gs::dtype::f32, {4}, true}};
    in.remove("part-00000.bin");
    m.parts = {gs::detail::write_part(in, "part-00000.bin", tensors, planned, data, true)};
    in.replace("manifest.json", gs::detail::text_of(m));
    texts warnings;
    return complaint([&] { gs::checkpointer(store, dir / "run", telling(warnings)).resume(); });
  };
  CHECK(said({{0, 2}, {2, 4}}, "w") == "");
  CHECK(store.steps() == 1);
  set_step(store, 0);
  CHECK(contains(said({{0, 2}, {1, 3}}, "w"), "element [1] is in block 0 of device 0 and in block 1 of device 0"));
  CHECK(contains(said({{0, 2}, {3, 4}}, "w"), "have 3 elements, the tensor 4"));
  CHECK(contains(said({{0, 4}, {0, 4}}, "w"), "occurs twice"));
  CHECK(contains(said({{0, 4}, {1, 4}}, "w"), "have 7 elements, the tensor 4"));
  CHECK(contains(said({}, "w"), "have 0 elements, the tensor 4"));
  CHECK(contains(said({{0, 4}}, "v"), "is no block of a tensor in the manifest"));
  CHECK(is_step(store, 0));
}

TEST_CASE("checkpointer: a checkpoint that claims another step is refused") {
  const scratch dir;
  {
    gs::parameter_store store = store_on({2}, 1, 7);
    CHECK(gs::checkpointer(store, dir / "run").save());
  }
  fs::rename(dir / "run/step-0000000007", dir / "run/step-0000000009");
  texts said;
  CHECK(contains(complaint([&] { gs::checkpointer(store_on({2}), dir / "run", telling(said)).resume(); }), "its manifest is of step 7"));
}

TEST_CASE("checkpointer: signatures") {
  const scratch dir;
  keys::write(dir / "secret", std::string(32, 'k'));
  keys::write(dir / "other", std::string(32, 'l'));
  keys::make_pair(dir / "private", dir / "public");
  struct test {
    gs::signing_key signs, checks, other;
  };
  for (const test& t :
       {test{gs::signing_key::hmac(dir / "secret"), gs::signing_key::hmac(dir / "secret"), gs::signing_key::hmac(dir / "other")},
        test{gs::signing_key::ed25519(dir / "private"), gs::signing_key::ed25519_public(dir / "public"),
             gs::signing_key::hmac(dir / "secret")}}) {
    fs::remove_all(dir / "run");
    gs::parameter_store store = store_on({2}, 1, 7);
    CHECK(gs::checkpointer(store, dir / "run", {.key = t.signs}).save());
    texts warnings;
    const auto said = [&](std::optional<gs::signing_key> key, bool required) {
      return complaint(
          [&] { gs::checkpointer(store, dir / "run", telling(warnings, {.key = key, .require_signature = required})).resume(); });
    };
    CHECK(said(t.checks, true) == "");
    CHECK(said(t.checks, false) == "");
    CHECK(said(std::nullopt, false) == "");
    CHECK(contains(said(std::nullopt, true), "require_signature needs a key"));
    CHECK(contains(said(t.other, true), "is not one of this key"));
    CHECK(contains(said(t.other, false), "is not one of this key"));
    const std::string path = dir / "run/latest/manifest.sig", good = content_of(path);
    for (std::size_t i = 0; i < good.size(); ++i) {
      flip_byte(path, i);
      if (said(t.checks, true).empty()) FAIL_CHECK("byte " << i << " of the signature may change");
      set_content(path, good.substr(0, i));
      if (said(t.checks, true).empty()) FAIL_CHECK("the signature may end at byte " << i);
      set_content(path, good);
    }
    fs::remove(path);
    CHECK(contains(said(t.checks, true), "is not signed"));
    CHECK(said(t.checks, false) == "");
  }
  gs::parameter_store store = store_on({2}, 1, 8);
  gs::checkpointer reader(store, dir / "new", {.key = gs::signing_key::ed25519_public(dir / "public")});
  CHECK(contains(complaint([&] { reader.save(); }), "is a public one"));
}

TEST_CASE("checkpointer: what a failed save has copied does not count as saved") {
  const scratch dir;
  gs::parameter_store store = store_on({2}, 1, 1);
  texts said;
  gs::checkpointer checkpoints(store, dir / "run", telling(said));
  CHECK(checkpoints.save());
  const gs::detail::bound_value& large = store.find("large")->value;
  for (std::size_t i = 0; i < large.data.size(); ++i) large.as<float>(i)[3] = std::numeric_limits<float>::quiet_NaN();  // in the same step
  CHECK_FALSE(checkpoints.save());
  CHECK(contains(complaint([&] { checkpoints.finish(); }), "the last save of the run failed"));
}

TEST_CASE("checkpointer: the event log of a process that is gone stays sealed") {
  const scratch dir;
  gs::parameter_store store = store_on({2}, 1, 7);
  {
    gs::checkpointer checkpoints(store, dir / "run");
    gs::event_log events(store.cluster(), dir / "run");
    checkpoints.log_to(events);
    CHECK(checkpoints.save());
  }
  gs::checkpointer checkpoints(store, dir / "run");
  checkpoints.resume();
  store.set_steps(8);
  CHECK(checkpoints.save());
  const gs::manifest m = gs::detail::parse_manifest(content_of(dir / "run/latest/manifest.json"));
  CHECK(m.step == 8);
  REQUIRE(m.event_logs.size() == 1);
  CHECK(m.event_logs[0].file == "events-00000.jsonl");
}

TEST_CASE("checkpointer: resume again goes back to the newest checkpoint, also one of this object") {
  const scratch dir;
  gs::parameter_store store = store_on({2}, 1, 1);
  gs::checkpointer checkpoints(store, dir / "run", {.every_steps = 1, .keep = 10});
  CHECK_FALSE(checkpoints.resume().has_value());
  run(store, checkpoints, 2, 6);
  set_step(store, 7);
  const auto back = checkpoints.resume();
  REQUIRE(back.has_value());
  CHECK(back->step == 6);
  CHECK(is_step(store, 6));
  CHECK(checkpoints.last() == dir / "run/step-0000000006");
  CHECK(names_in(dir / "run").size() == 6);
}

TEST_CASE("checkpointer: what another run has made is not removed") {
  const scratch dir;
  gs::parameter_store store = store_on({2}, 1, 5), other = store_on({2}, 2, 5);
  texts said;
  gs::checkpointer first(store, dir / "run", {.lock_seconds = -1}), second(other, dir / "run", telling(said, {.lock_seconds = -1}));
  CHECK(first.save());
  CHECK_FALSE(second.save());
  CHECK(contains(said.back(), "does another run use this directory?"));
  set_step(other, 6);
  CHECK(second.save());
  CHECK(names_in(dir / "run") == texts{"latest", "step-0000000005", "step-0000000006"});
  gs::parameter_store again = store_on({3});
  fs::remove_all(dir / "run/step-0000000006");
  CHECK(gs::checkpointer(again, dir / "run", {.lock_seconds = -1}).resume()->step == 5);
}

TEST_CASE("checkpointer: a relative path keeps its meaning, and a directory that was removed is locked again") {
  const scratch dir;
  const auto before = fs::current_path();
  gs::parameter_store store = store_on({2}, 1, 1);
  texts said;
  fs::current_path(std::string(dir / "."));
  gs::checkpointer checkpoints(store, "run", telling(said));
  fs::current_path(before);
  CHECK(checkpoints.save());
  CHECK(fs::exists(dir / "run/latest/manifest.json"));
  fs::remove_all(dir / "run");
  set_step(store, 2);
  CHECK(checkpoints.save());
  REQUIRE(said.size() == 1);
  CHECK(contains(said[0], "or its lock was removed during the run; it is locked again"));
  const other_run other(dir / "run");
  CHECK_FALSE(other.locked());
}

TEST_CASE("checkpointer: an event log that is not the sealed one is reported") {
  const scratch dir;
  gs::parameter_store store = store_on({2}, 1, 1);
  for (const bool cut : {false, true}) {
    texts said;
    gs::event_log events(store.cluster(), dir / "run");
    gs::checkpointer checkpoints(store, dir / "run", telling(said));
    checkpoints.log_to(events);
    checkpoints.resume();
    CHECK(said.empty() != cut);
    if (cut) CHECK(contains(said[0], "the event log is not the one that the checkpoint has sealed: "));
    CHECK(checkpoints.save());
    const gs::manifest m = gs::detail::parse_manifest(content_of(dir / "run/latest/manifest.json"));
    const gs::event_log_finding found = gs::check_event_log(events.path(), m.event_logs);
    CHECK(found.unaltered);  // since the last load
    CHECK(contains(found.told, "record 3 tells that the log was altered before it: events-00000.jsonl: record") == cut);
    if (!cut) fs::remove(events.path());
  }
}

TEST_CASE("checkpointer: an element that is not finite") {
  const scratch dir;
  gs::parameter_store store = store_on({2}, 1, 1);
  texts said;
  gs::checkpointer checkpoints(store, dir / "run", telling(said, {.every_steps = 1}));
  CHECK(checkpoints.save());
  set_step(store, 2);
  const auto spoil = [&](float value) {
    const gs::detail::bound_value& v = store.find("large")->value;
    for (std::size_t i = 0; i < v.data.size(); ++i)
      if (v.elements(i) > 0) v.as<float>(i)[3] = value;
  };
  spoil(std::numeric_limits<float>::quiet_NaN());
  CHECK_FALSE(checkpoints.save());
  REQUIRE(said.size() == 1);
  CHECK(contains(said[0], "of \"large["));
  CHECK(contains(said[0], "is infinite or not a number"));
  CHECK(contains(said[0], "the last one is that of step 1"));
  CHECK(contains(complaint([&] { checkpoints.finish(); }), "the last save of the run failed"));
  set_step(store, 3);
  CHECK(checkpoints.save());
  CHECK(names_in(dir / "run") == texts{"latest", "step-0000000001", "step-0000000003"});

  gs::checkpointer strict(store, dir / "strict", telling(said, {.every_steps = 1, .on_failure = gs::checkpointer_options::failure::stop}));
  spoil(std::numeric_limits<float>::infinity());
  CHECK(contains(complaint([&] { strict.save(); }), "is infinite or not a number"));
  gs::checkpointer all(store, dir / "all", {.allow_not_finite = true});
  CHECK(all.save());
}

TEST_CASE("checkpointer: a save in another floating-point environment than that of the cluster is refused; a load in one is told") {
  const scratch dir;
  {
    gs::parameter_store store = store_on({2}, 1, 7);
    gs::checkpointer checkpoints(store, dir / "run");
    {
      const float_modes::mode now(FE_UPWARD);
      CHECK(complaint([&] { checkpoints.save(); }) ==
            "checkpoint: the floating-point environment has changed since the cluster was made: it was rounding to nearest, it is rounding "
            "upward");
      CHECK(contains(complaint([&] { checkpoints.finish(); }), "it is rounding upward"));
    }
    if (float_modes::can_flush) {
      const float_modes::mode now(FE_TONEAREST, float_modes::flush_results);
      CHECK(contains(complaint([&] { checkpoints.save(); }), "it is rounding to nearest, subnormal results become 0"));
    }
    CHECK(!fs::exists(dir / "run/latest"));
    CHECK(checkpoints.save());
  }
  const float_modes::mode now(FE_DOWNWARD);  // set before the cluster is made, so it is intended
  texts said;
  gs::parameter_store store = store_on({2}, 1, 8);
  gs::checkpointer checkpoints(store, dir / "run", telling(said));
  CHECK(checkpoints.resume()->step == 7);
  REQUIRE(said.size() == 1);
  CHECK(contains(said[0], ", rounding downward; training goes on, but not with the same bits"));
  store.set_steps(8);
  CHECK(checkpoints.save());
}

TEST_CASE("checkpointer: a full disk, and a directory that cannot be made: training goes on, or stops, as wanted") {
  const scratch dir;
  gs::parameter_store store = store_on({2});
  texts said;
  gs::checkpointer checkpoints(store, dir / "run", telling(said, {.every_steps = 1}));
  run(store, checkpoints, 1, 1);
  {
    const small_disk full(30000);
    run(store, checkpoints, 2, 3);
    gs::parameter_store other = store_on({2}, 1, 5);
    gs::checkpointer strict(other, dir / "strict", {.on_failure = gs::checkpointer_options::failure::stop});
    CHECK(contains(complaint([&] { strict.save(); }), "File too large"));
  }
  REQUIRE(said.size() == 2);
  CHECK(contains(said[0], "the checkpoint of step 2 could not be saved: " + (dir / "run/step-0000000002/part-0000")));
  CHECK(contains(said[0], "File too large; the last one is that of step 1"));
  run(store, checkpoints, 4, 4);
  CHECK(names_in(dir / "run") == texts{"latest", "step-0000000001", "step-0000000004"});

  said.clear();
  set_content(dir / "file", "mine");
  gs::checkpointer nowhere(store, dir / "none/x", telling(said, {.every_steps = 1}));
  fs::remove_all(dir / "none");
  set_content(dir / "none", "mine");
  run(store, nowhere, 5, 5);
  REQUIRE(said.size() == 1);
  CHECK(contains(said[0], "cannot be made as a directory"));
  CHECK(content_of(dir / "none") == "mine");
  CHECK(contains(complaint([&] { gs::checkpointer(store, dir / "file"); }), "Not a directory"));
}

TEST_CASE("checkpointer: a request to stop saves and ends the loop") {
  const scratch dir;
  gs::parameter_store store = store_on({2});
  const gs::stop_request stop;
  gs::checkpointer checkpoints(store, dir / "run", {.every_steps = 10});
  run(store, checkpoints, 1, 13);
  set_step(store, 14);
  std::raise(SIGTERM);
  CHECK_FALSE(checkpoints.after_step());
  CHECK(checkpoints.last() == dir / "run/step-0000000014");
  CHECK_FALSE(checkpoints.after_step());  // nothing has changed: no new checkpoint
  CHECK(names_in(dir / "run") == texts{"latest", "step-0000000010", "step-0000000014"});
}

TEST_CASE("checkpointer: the end marker") {
  const scratch dir;
  gs::parameter_store store = store_on({2}, 1, 7);
  {
    gs::checkpointer checkpoints(store, dir / "run");
    int calls = 0;
    checkpoints.keep_state(
        "calls", [&] { return std::to_string(calls / 2); }, [](std::string_view) {});
    CHECK(checkpoints.save());
    checkpoints.finish();  // the same content is not saved again
    CHECK(names_in(dir / "run") == texts{"finished", "latest", "step-0000000007"});
    calls = 2;
    checkpoints.finish();  // a state has changed
    CHECK(names_in(dir / "run") == texts{"finished", "latest", "step-0000000007.1"});
    store.find("bias")->value.as<float>(0)[0] += 1;
    checkpoints.finish();  // a parameter has changed
    CHECK(names_in(dir / "run") == texts{"finished", "latest", "step-0000000007.2"});
  }
  gs::checkpointer again(store, dir / "run");
  again.keep_state(
      "calls", [] { return "1"; }, [](std::string_view) {});
  CHECK(again.resume()->step == 7);
  CHECK(fs::exists(dir / "run/finished"));  // a program that only loads does not remove it
  again.finish();                           // the loaded content is not saved again
  CHECK(names_in(dir / "run") == texts{"finished", "latest", "step-0000000007.2"});
  store.set_steps(8);
  CHECK(again.save());
  CHECK_FALSE(fs::exists(dir / "run/finished"));  // the run continues
  set_content(dir / "run/finished", "a file of the user");
  CHECK(contains(complaint([&] { again.finish(); }), "it is not overwritten"));
  CHECK(content_of(dir / "run/finished") == "a file of the user");
  gs::checkpointer third(store, dir / "run");
  CHECK(content_of(dir / "run/finished") == "a file of the user");
}

TEST_CASE("checkpointer: a step that is saved again replaces its checkpoint: those of `keep` steps stay") {
  const scratch dir;
  for (const int keep : {1, 2, 3}) {
    CAPTURE(keep);
    const std::string path = dir / ("run" + std::to_string(keep));
    gs::parameter_store store = store_on({2});
    int clock = 0, restored = -1;
    const auto count = [&](gs::checkpointer& checkpoints) {
      checkpoints.keep_state(
          "clock", [&] { return std::to_string(++clock); }, [&](std::string_view t) { restored = std::stoi(std::string(t)); });
    };
    {
      gs::checkpointer checkpoints(store, path, {.every_steps = 1, .keep = keep});
      count(checkpoints);
      run(store, checkpoints, 1, 4);
      checkpoints.finish();
      checkpoints.finish();
    }
    texts wanted{"finished", "latest"};
    for (int step = 5 - keep; step < 4; ++step) wanted.push_back("step-000000000" + std::to_string(step));
    wanted.push_back("step-0000000004.2");
    CHECK(names_in(path) == wanted);
    CHECK(fs::read_symlink(path + "/latest") == "step-0000000004.2");

    // Older versions of the library left directories with several checkpoints of one step.
    fs::copy(path + "/step-0000000004.2", path + "/step-0000000004.1", fs::copy_options::recursive);
    gs::parameter_store again = store_on({3});
    gs::checkpointer checkpoints(again, path, {.keep = keep});
    count(checkpoints);
    CHECK(checkpoints.resume()->name == "step-0000000004.2");
    CHECK(restored == clock);
    set_step(again, 5);
    CHECK(checkpoints.save());
    wanted = {"latest"};
    for (int step = 6 - keep; step < 4; ++step) wanted.push_back("step-000000000" + std::to_string(step));
    if (keep > 1) wanted.push_back("step-0000000004.2");
    wanted.push_back("step-0000000005");
    CHECK(names_in(path) == wanted);
  }
}

TEST_CASE("checkpointer: removes what killed runs have left, and nothing else") {
  const scratch dir;
  gs::parameter_store store = store_on({2}, 1, 7);
  CHECK(gs::checkpointer(store, dir / "run").save());
  for (const char* name : {"step-0000000005", "step-0000000006", "step-000000004", "step-0000000004.0", "other"})
    fs::create_directory(dir / ("run/") + name);
  for (const char* name : {"step-0000000005/part-00000.bin", "other/part-00000.bin"}) {
    fs::copy(dir / "run/latest/part-00000.bin", dir / ("run/") + name);
    fs::resize_file(dir / ("run/") + name, 100);
  }
  set_content(dir / "run/step-0000000005/part-00001.bin", std::string(100, '\0'));
  set_content(dir / "run/step-0000000005/part-00002.bin", "");
  set_content(dir / "run/step-0000000006/part-00000.bin", "a file of the user");
  set_content(dir / "run/step-0000000006/notes.txt", "mine");
  fs::create_directory(dir / "elsewhere");
  fs::copy(dir / "run/latest/part-00000.bin", dir / "elsewhere/part-00000.bin");
  fs::create_symlink(dir / "elsewhere", dir / "run/step-0000000003");
  gs::parameter_store again = store_on({2});
  gs::checkpointer checkpoints(again, dir / "run", {.keep = 1});
  CHECK(checkpoints.resume()->step == 7);
  set_step(again, 8);
  CHECK(checkpoints.save());
  CHECK(names_in(dir / "run") ==
        texts{"latest", "other", "step-0000000003", "step-0000000004.0", "step-0000000006", "step-0000000008", "step-000000004"});
  CHECK(names_in(dir / "run/step-0000000006") == texts{"notes.txt", "part-00000.bin"});
  CHECK(fs::exists(dir / "elsewhere/part-00000.bin"));
  CHECK(fs::exists(dir / "run/other/part-00000.bin"));
}

TEST_CASE("checkpointer: symbolic links that wait for it are not followed") {
  const scratch dir;
  gs::parameter_store store = store_on({2}, 1, 7);
  texts said;
  fs::create_directory(dir / "run");
  fs::create_directory(dir / "elsewhere");
  set_content(dir / "target", "mine");
  gs::checkpointer checkpoints(store, dir / "run", telling(said));
  fs::create_symlink(dir / "elsewhere", dir / "run/step-0000000007");  // after it has looked
  CHECK_FALSE(checkpoints.save());
  CHECK(names_in(dir / "elsewhere").empty());
  fs::remove(dir / "run/step-0000000007");
  fs::create_directory(dir / "run/step-0000000007.1");
  fs::create_symlink(dir / "target", dir / "run/step-0000000007.1/part-00000.bin");
  CHECK_FALSE(checkpoints.save());
  CHECK(fs::is_symlink(dir / "run/step-0000000007.1/part-00000.bin"));
  fs::create_symlink(dir / "target", dir / "run/latest");
  CHECK(checkpoints.save());
  CHECK(contains(said.back(), "is not a link to a checkpoint"));
  CHECK(content_of(dir / "target") == "mine");
  CHECK(fs::read_symlink(dir / "run/latest") == dir / "target");
  CHECK(complaint([&] { gs::checkpointer(store, dir / "run").resume(); }) == "");
}

TEST_CASE("checkpointer: a second run in the directory is refused while the first one lives") {
  const scratch dir;
  gs::parameter_store store = store_on({2}, 1, 7);
  CHECK(gs::checkpointer(store, dir / "run").save());
  set_content(dir / "run/finished", "finished at step 7\n");
  gs::parameter_store again = store_on({3});
  {
    other_run other(dir / "run");
    REQUIRE(other.locked());
    CHECK(complaint([&] { gs::checkpointer(again, dir / "run", {.lock_seconds = 0.1}); }) ==
          "checkpoint: " + (dir / "run") + ": another run uses this directory: process " + std::to_string(other.pid()) + " on host " +
              gs::detail::host_name() + "; end that run, or use another directory");
    CHECK(fs::exists(dir / "run/finished"));
    gs::checkpointer reader(again, dir / "run", {.lock_seconds = -1});
    CHECK(reader.resume()->step == 7);
  }
  {
    const other_run other(dir / "run", false, 0.3);  // another run that is about to end
    gs::checkpointer checkpoints(again, dir / "run", {.lock_seconds = 60});
    CHECK(checkpoints.resume()->step == 7);
    CHECK(in_child([&] { return complaint([&] { gs::checkpointer(store, dir / "run", {.lock_seconds = 0}); }); }).find("another run") !=
          std::string::npos);
    gs::checkpointer also(again, dir / "run");  // of the same process
    CHECK(also.resume()->step == 7);
  }
  CHECK(in_child([&] { return complaint([&] { gs::checkpointer(store, dir / "run", {.lock_seconds = 0}); }); }) == "");
}

TEST_CASE("checkpointer: where nothing can be locked, it warns and goes on") {
  const scratch dir;
  fs::create_directory(dir / "run");
  set_content(dir / "run/.lock", "mine");
  gs::parameter_store store = store_on({2}, 1, 7);
  texts said;
  gs::checkpointer checkpoints(store, dir / "run", telling(said));
  CHECK(said == texts{"gshard: the directory " + (dir / "run") + " is not locked: " + (dir / "run/.lock") +
                      ": is not the lock of a run. Another run in it is detected only when both save\n"});
  CHECK(checkpoints.save());
  CHECK(content_of(dir / "run/.lock") == "mine");
}

TEST_CASE("checkpointer: options that are wrong") {
  gs::parameter_store store = store_on({2});
  CHECK(contains(complaint([&] { gs::checkpointer(store, "x", {.keep = 0}); }), "keep is 0"));
  CHECK(contains(complaint([&] { gs::checkpointer(store, "x", {.every_seconds = -1}); }), "every_seconds is negative"));
  CHECK(contains(complaint([&] { gs::checkpointer(store, "x", {.lock_seconds = NAN}); }), "lock_seconds is not a number"));
  CHECK(contains(complaint([&] { gs::checkpointer(store, ""); }), "has no name"));
}

TEST_CASE("checkpointer: a process that is killed at any moment leaves a valid checkpoint") {
  const scratch dir;
  const auto latest = [&] { return fs::is_symlink(dir / "run/latest") ? fs::read_symlink(dir / "run/latest").string() : ""; };
  std::uint32_t last = 0;
  for (int turn = 0; turn < 40; ++turn) {
    const bool has_to_save = turn % 4 == 3;  // the others may be killed before their first checkpoint
    const std::string before = latest();
    const pid_t child = ::fork();
    if (child == 0) {
      gs::parameter_store store = store_on({2});
      gs::checkpointer checkpoints(store, dir / "run", {.every_steps = 1});
      checkpoints.resume();
      for (std::uint32_t step = store.steps() + 1;; ++step) {
        set_step(store, step);
        checkpoints.after_step();
      }
    }
    for (int i = 0; has_to_save && latest() == before && i < 30000; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::microseconds((has_to_save ? 0 : 20000) + 1300 * turn));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    REQUIRE(WIFSIGNALED(status));
    texts said;
    gs::parameter_store store = store_on({3});
    const auto back = gs::checkpointer(store, dir / "run", telling(said)).resume();
    CHECK(said.empty());
    if (back) CHECK(is_step(store, back->step));
    const std::uint32_t step = back ? back->step : 0;
    CHECK(step >= last);
    if (has_to_save) CHECK(step > last);
    last = step;
  }
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/checkpoint/checkpoint_check.hpp>

#include "../../io/scratch.hpp"
#include "../keys.hpp"
#include "../run_stores.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

namespace gs = gshard;
namespace fs = std::filesystem;
using texts = std::vector<std::string>;

namespace {

/// The faults, without the directory.
texts faults_in(const texts& paths, const gs::signing_key* key = nullptr) {
  const gs::checkpoint_finding f = gs::check_checkpoint(paths, key);
  CHECK(!f.text.empty());
  return f.faults;
}

}  // namespace

TEST_CASE("checkpoint check: what was saved holds, on any mesh, with its seals") {
  for (const std::vector<int>& mesh : {std::vector{1}, {3}, {2, 2}}) {
    const scratch dir;
    gs::parameter_store store = run_stores::make(stores::simulated(mesh), 1, 7);
    gs::event_log log(dir / "events-00000.jsonl");
    log.write("start");
    gs::checkpointer checkpoints(store, dir / "run");
    checkpoints.log_to(log);
    CHECK(checkpoints.save());
    const texts path{dir / "run/step-0000000007"};
    const gs::checkpoint_finding f = gs::check_checkpoint(path);
    CHECK(f.faults.empty());
    CHECK(contains(f.text, path[0] + ": step 7, "));
    CHECK(contains(f.text, " bytes, all as they were written; no key was given"));
    REQUIRE(f.event_logs.size() == 1);
    CHECK(f.event_logs[0].file == "events-00000.jsonl");
  }
}

TEST_CASE("checkpoint check: each of 1,000 random edits of its files is found, and its file is named") {
  const scratch dir;
  gs::parameter_store store = run_stores::make(stores::simulated({3}), 1, 7);
  gs::checkpointer checkpoints(store, dir / "run");
  CHECK(checkpoints.save());
  const std::string path = dir / "run/step-0000000007/";
  const texts names = run_stores::names_in(path);
  REQUIRE(names.size() == 4);
  std::mt19937 random(1);
  const auto below = [&](std::size_t n) { return std::size_t(random()) % n; };
  for (int edit = 0; edit < 1000; ++edit) {
    const std::string& name = names[below(names.size())];
    const std::string before = content_of(path + name);
    std::string after = before;
    const std::size_t kind = edit < 4 ? 3 : below(3);
    // Half of the edits are in the first kilobyte: in headers.
    const std::size_t at = below(random() % 2 == 0 ? std::min<std::size_t>(1024, before.size()) : before.size());
    if (kind == 0) after[at] = char(after[at] ^ (1 << below(8)));
    if (kind == 1) after.resize(at);
    if (kind == 2) after.insert(at, 1 + below(9), char(below(256)));
    if (kind == 3) fs::remove(path + name);
    else set_content(path + name, after);
    const texts faults = faults_in({path});
    CAPTURE(name);
    CAPTURE(kind);
    CAPTURE(at);
    REQUIRE(!faults.empty());
    CHECK(contains(faults[0], name + ": "));
    if (name != "manifest.json") CHECK(faults.size() == 1);
    set_content(path + name, before);
  }
  CHECK(faults_in({path}).empty());
}

TEST_CASE("checkpoint check: with a key, the manifest must be signed by it; a manifest that was written anew is found") {
  const scratch dir;
  keys::make_pair(dir / "private.pem", dir / "public.pem");
  keys::make_pair(dir / "other.pem", dir / "other-public.pem");
  const gs::signing_key key = gs::signing_key::ed25519_public(dir / "public.pem"),
                        other = gs::signing_key::ed25519_public(dir / "other-public.pem");
  gs::parameter_store store = run_stores::make(stores::simulated({2}), 1, 7);
  gs::checkpointer checkpoints(store, dir / "run", {.key = gs::signing_key::ed25519(dir / "private.pem")});
  CHECK(checkpoints.save());
  const std::string path = dir / "run/step-0000000007", sealed = content_of(path + "/manifest.json");
  CHECK(faults_in({path}, &key).empty());
  CHECK(faults_in({path}).empty());
  CHECK(contains(faults_in({path}, &other).at(0), "manifest.sig: is not the signature of the manifest by this key"));

  gs::manifest m = gs::detail::parse_manifest(sealed);
  m.settings["rate"] = "0.5";
  set_content(path + "/manifest.json", gs::detail::text_of(m));
  CHECK(faults_in({path}).empty());  // its SHA-256 is right
  CHECK(contains(faults_in({path}, &key).at(0), "is not the signature"));
  set_content(path + "/manifest.json", sealed);
  fs::remove(path + "/manifest.sig");
  CHECK(contains(faults_in({path}, &key).at(0), "manifest.json: is not signed: there is no manifest.sig"));

  fs::rename(path, dir / "run/step-0000000009");
  CHECK(contains(faults_in({dir / "run/step-0000000009"}).at(0), "manifest.json: is that of step 7"));
}

TEST_CASE("checkpoint check: the directories of several hosts have all parts together, and one manifest") {
  const scratch dir;
  gs::parameter_store store = run_stores::make(stores::simulated({3}), 1, 7);
  CHECK(gs::checkpointer(store, dir / "a").save());
  fs::copy(dir / "a", dir / "b", fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  const std::string a = dir / "a/step-0000000007", b = dir / "b/step-0000000007";
  fs::remove(a + "/part-00000.bin");
  fs::remove(b + "/part-00002.bin");
  CHECK(faults_in({a, b}).empty());
  CHECK(faults_in({a}) == texts{a + "/part-00000.bin: is missing"});
  std::string copy = content_of(b + "/part-00001.bin");
  copy.back() = char(copy.back() ^ 1);
  set_content(b + "/part-00001.bin", copy);
  CHECK(faults_in({a, b}).size() == 1);  // a damaged copy next to a good one
  gs::manifest m = gs::detail::parse_manifest(content_of(b + "/manifest.json"));
  m.seed = 2;
  set_content(b + "/manifest.json", gs::detail::text_of(m));
  CHECK(contains(faults_in({a, b}).at(0), "b/step-0000000007/manifest.json: is not the same as in "));
  CHECK(contains(faults_in({dir / "none"}).at(0), "none: cannot be opened"));
  CHECK(faults_in({}).empty());
}

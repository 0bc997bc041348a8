// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// If the power fails at any moment, the disk has the old content or the new one, and every save that was reported. Checked by the journal
// of the preloaded library of faults.cpp.
#include "faults.hpp"

#include "../run_stores.hpp"

#include "../../io/scratch.hpp"

#include <gshard/io/checkpoint.hpp>

#include <doctest/doctest.h>

#include <dlfcn.h>

#include <cstdint>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

namespace gs = gshard;
using run_stores::set_step, run_stores::texts;

namespace {

/// The changes that are not on the disk yet, call by call: contents of files, and entries of directories.
class disk {
 public:
  std::string problem;  // the first problem

  void follow(std::string_view journal) {
    std::istringstream lines{std::string(journal)};
    for (std::string what; lines >> what;) {
      std::string file, folder, name, before, old;
      if (what == "write" && lines >> file) written_.insert(file);
      else if (what == "flush" && lines >> file) flush(file);
      else if (what == "make" && lines >> folder >> name >> file) make(folder, name, file);
      else if (what == "rename" && lines >> before >> old >> folder >> name >> file) rename(before, old, folder, name, file);
      else if (what == "remove" && lines >> folder >> name) remove(folder, name);
      else refuse("a journal with the call " + what);
    }
  }
  /// A save has returned. All current names must be on the disk. Removed names may come back.
  void check_saved() {
    for (const auto& [at, file] : made_)
      if (at.second != ".lock") refuse("the entry " + at.second + " is not on the disk");
    for (const auto& [at, file] : names_)
      if (written_.contains(file) && at.second != ".lock") refuse("the content of " + at.second + " is not on the disk");
  }

 private:
  using entry = std::pair<std::string, std::string>;  // directory and name
  std::set<std::string> written_;              // files with content that is not on the disk
  std::map<entry, std::string> names_, made_;  // files by entry: all, and those whose entry is not on the disk
  std::set<entry> removed_;                    // entries that a power cut may bring back

  void refuse(const std::string& why) {
    if (problem.empty()) problem = why;
  }
  void flush(const std::string& file) {
    written_.erase(file);
    std::erase_if(made_, [&](const auto& e) { return e.first.first == file; });
    std::erase_if(removed_, [&](const entry& e) { return e.first == file; });
  }
  void make(const std::string& folder, const std::string& name, const std::string& file) {
    written_.erase(file);  // a number may be reused
    names_[{folder, name}] = made_[{folder, name}] = file;
  }
  void rename(const std::string& before, const std::string& old, const std::string& folder, const std::string& name,
              const std::string& file) {
    if (written_.contains(file)) refuse(old + " becomes " + name + " before its content is on the disk");
    names_.erase({before, old});
    made_.erase({before, old});
    names_[{folder, name}] = made_[{folder, name}] = file;
  }
  void remove(const std::string& folder, const std::string& name) {
    if (name.starts_with("part-") && removed_.contains({folder, "manifest.json"}))
      refuse(name + " is removed, although the manifest may come back");
    names_.erase({folder, name});
    made_.erase({folder, name});
    removed_.insert({folder, name});
  }
};

template <class F>
std::string journal_of(F f) {
  const auto keep = reinterpret_cast<decltype(&gshard_keep_journal)>(::dlsym(RTLD_DEFAULT, "gshard_keep_journal"));
  const auto journal = reinterpret_cast<decltype(&gshard_journal)>(::dlsym(RTLD_DEFAULT, "gshard_journal"));
  REQUIRE((keep != nullptr && journal != nullptr));  // the library is preloaded
  keep(1);
  f();
  keep(0);
  return journal();
}

gs::parameter_store store_of(int devices) { return stores::make(stores::simulated({devices}), stores::usual(), 3); }

}  // namespace

TEST_CASE("power cut: saves of a checkpointer, which remove older ones, with and without a link to the latest") {
  for (const bool links : {true, false}) {
    CAPTURE(links);
    const scratch dir;
    gs::parameter_store store = store_of(2);
    texts said;
    disk d;
    std::string all;
    std::optional<gs::checkpointer> checkpoints;
    const auto follow = [&](auto f) {
      const std::string journal = journal_of(f);
      all += journal;
      d.follow(journal);
      d.check_saved();
      CHECK(d.problem == "");
    };
    follow([&] {
      gs::checkpointer_options options = run_stores::telling(said);
      options.keep = 2;
      checkpoints.emplace(store, dir / "some/run", options);
    });
    if (!links) std::ofstream(dir / "some/run/latest") << "not a link";
    for (std::uint32_t step = 1; step <= 4; ++step) {
      set_step(store, step);
      CAPTURE(step);
      follow([&] { CHECK(checkpoints->save()); });
    }
    follow([&] { checkpoints->finish(); });
    for (const char* const call : {"make ", "write ", "flush ", "rename ", "remove "}) CHECK(all.find(call) != all.npos);
  }
}

TEST_CASE("power cut: a safetensors file is replaced by another") {
  const scratch dir;
  gs::parameter_store store = store_of(2);
  disk d;
  for (std::uint32_t step = 1; step <= 2; ++step) {
    set_step(store, step);
    d.follow(journal_of([&] { gs::save(store, dir / "f"); }));
    d.check_saved();
    CHECK(d.problem == "");
  }
}

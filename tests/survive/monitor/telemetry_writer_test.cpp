// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/monitor/telemetry_writer.hpp>

#include "../../exec/backend/failing_threads.hpp"
#include "../../io/scratch.hpp"
#include "../prometheus_parser.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace gs = gshard;

namespace {

unsigned mode(const std::string& path) {
  struct stat status {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status.st_mode & 0777u;
}
gs::detail::telemetry_sample step(std::uint32_t n) {
  gs::detail::telemetry_sample s;
  s.step = n;
  s.lists = {{"load", {1, 2}}};
  return s;
}

}  // namespace

TEST_CASE("telemetry: files, their modes, and a line that a killed process left") {
  const scratch folder;
  const mode_t before = ::umask(0);
  const std::string lines = folder / "t.jsonl", state = folder / "t.prom";
  std::vector<std::string> told;
  const auto tell = [&](const std::string& s) { told.push_back(s); };
  for (int start = 0; start < 2; ++start) {
    gs::detail::telemetry_writer writer({lines, state, 1e9, 2, {}, tell}, "{\"telemetry\":1}\n");
    for (std::uint32_t n = 0; n < 3; ++n) writer.add(step(n));
    writer.set_straggler("1", start == 0);
  }
  CHECK(mode(lines) == 0600);
  CHECK(mode(state) == 0644);
  ::umask(0077);
  std::ofstream(lines, std::ios::app) << "{\"step\":3,\"ti";
  {
    gs::detail::telemetry_writer writer({lines, state, 1e9, 2, {}, tell}, "{\"telemetry\":1}\n");
  }
  CHECK(mode(state) == 0644);  // for any umask: node exporter is another user
  ::umask(before);
  std::ifstream file(lines);
  std::vector<std::string> all;
  for (std::string line; std::getline(file, line);) all.push_back(line);
  REQUIRE(all.size() == 10);
  CHECK(all[8] == "{\"step\":3,\"ti");
  CHECK(nlohmann::json::parse(all[9])["telemetry"] == 1);
  CHECK(nlohmann::json::parse(all[1]).contains("lists"));
  CHECK_FALSE(nlohmann::json::parse(all[2]).contains("lists"));
  CHECK(prometheus_parser(content_of(state)).samples.at("gshard_running") == 0);
  CHECK(told.empty());
  CHECK(folder.entries() == 2);
}

TEST_CASE("telemetry: what cannot be written is told once, and steps go on") {
  const scratch folder;
  std::vector<std::string> told;
  const auto tell = [&](const std::string& s) { told.push_back(s); };
  {
    gs::detail::telemetry_writer writer({"", folder / "absent/t.prom", 0, 1, {}, tell}, "");
    writer.add(step(1));
  }
  REQUIRE(told.size() == 1);
  CHECK(contains(told[0], "t.prom: no temporary file can be made in its directory"));
  {
    const small_disk disk(0);
    gs::detail::telemetry_writer writer({folder / "t.jsonl", "", 0, 1, {}, tell}, "{}\n");
    writer.add(step(1));
  }
  CHECK(told.size() == 2);
  REQUIRE(::symlink((folder / "t.jsonl").c_str(), (folder / "link").c_str()) == 0);
  CHECK(contains(complaint([&] { gs::detail::telemetry_writer writer({folder / "link", "", 0, 1, {}, tell}, ""); }), "is a symbolic link"));
}

TEST_CASE("telemetry: a report that throws does not end the thread, nor the process") {
  const scratch folder;
  int reports = 0;
  {
    gs::detail::telemetry_writer writer({"", folder / "absent/t.prom", 0, 1, {}, [&](const std::string&) {
                                           ++reports;
                                           throw gs::error("the user's report");
                                         }}, "");
    writer.add(step(1));
  }
  CHECK(reports == 1);
}

TEST_CASE("telemetry: a file of another user is refused") {
  if (::geteuid() != 0) return;  // only root can make one
  const scratch folder;
  set_content(folder / "t.jsonl", "");
  REQUIRE(::chown((folder / "t.jsonl").c_str(), 65534, 65534) == 0);
  const auto open = [&] { gs::detail::telemetry_writer writer({folder / "t.jsonl", "", 0, 1, {}, {}}, ""); };
  CHECK(contains(complaint(open), "belongs to another user"));
}

TEST_CASE("telemetry: without room for a thread, an error, and signals as before") {
  const failing_threads now;
  if (!now.fail()) return;
  CHECK(contains(complaint([] { gs::detail::telemetry_writer writer({"", "", 0, 1, {}, {}}, ""); }), "no thread can be made"));
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  CHECK(sigismember(&mask, SIGTERM) == 0);
}

TEST_CASE("telemetry: lines of some steps only; the state counts all") {
  const scratch folder;
  {
    gs::detail::telemetry_writer writer({folder / "t.jsonl", folder / "t.prom", 1e9, 6, {}, {}, 4}, "{\"telemetry\":1}\n");
    for (std::uint32_t n = 0; n < 13; ++n) writer.add(step(n));
  }
  std::ifstream file(folder / "t.jsonl");
  std::string line;
  std::vector<int> steps, lists;
  while (std::getline(file, line)) {
    const auto j = nlohmann::json::parse(line);
    if (j.contains("step")) steps.push_back(j["step"]);
    if (j.contains("lists")) lists.push_back(j["step"]);
  }
  CHECK(steps == std::vector<int>{0, 4, 8, 12});
  CHECK(lists == std::vector<int>{0, 12});
  CHECK(prometheus_parser(content_of(folder / "t.prom")).samples.at("gshard_steps_total") == 13);
}

TEST_CASE("telemetry: a run that hangs before its first step has a time, when it started; temporary files of a killed one go") {
  const scratch folder;
  set_content(folder / "t.prom.tmp-0123456789abcdef", "");
  const gs::detail::telemetry_writer writer({"", folder / "t.prom", 1e9, 1, {}, {}}, "");
  for (int i = 0; i < 1000 && content_of(folder / "t.prom").empty(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const auto samples = prometheus_parser(content_of(folder / "t.prom")).samples;
  CHECK(samples.at("gshard_running") == 1);
  CHECK(samples.at("gshard_steps_total") == 0);
  CHECK(samples.at("gshard_step_timestamp_seconds") == samples.at("gshard_start_timestamp_seconds"));
  CHECK(folder.entries() == 1);
}

TEST_CASE("telemetry: states of an earlier run are removed, and nothing else") {
  const scratch folder;
  const std::string state = gs::detail::telemetry_totals().prometheus();
  for (const char* ours : {"gshard-00000.prom", "gshard-00007.prom", "gshard-100000.prom"}) set_content(folder / ours, state);
  set_content(folder / "gshard-00001.prom", "# HELP mine My own.\n");
  set_content(folder / "gshard-00002.prom", "");
  set_content(folder / "node.prom", state);
  REQUIRE(::symlink((folder / "node.prom").c_str(), (folder / "gshard-00003.prom").c_str()) == 0);
  if (::geteuid() == 0) {
    set_content(folder / "gshard-00004.prom", state);
    REQUIRE(::chown((folder / "gshard-00004.prom").c_str(), 65534, 65534) == 0);
  }
  gs::detail::remove_old_states(folder / "");
  CHECK(folder.entries() == (::geteuid() == 0 ? 5 : 4));
  CHECK(content_of(folder / "node.prom") == state);
  gs::detail::remove_old_states(folder / "absent");
}

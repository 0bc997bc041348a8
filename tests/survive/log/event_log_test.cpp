// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/log/event_log.hpp>

#include "../../io/scratch.hpp"

#include <gshard/cluster/datagram_watch.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/exec/program/executable.hpp>
#include <gshard/exec/tensor/run_scope.hpp>
#include <gshard/ops/check/check_finite.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace gs = gshard;

namespace {

inline constexpr auto product = [](auto&, auto x, auto y) { return gs::einsum<"AB,BC->AC">(x, y); };
using line = gs::mesh<gs::axis<"x">>;
inline constexpr auto mean_of = [](auto&, auto x) { return gs::mean(gs::check_finite(x, "x")); };
using loss_of = gs::program<mean_of, line, gs::in<"A", gs::P<"x">>>;
using products = gs::program<product, line, gs::in<"AB", gs::P<"x", gs::none>>, gs::in<"BC">>;

std::vector<nlohmann::json> records_in(const std::string& path) {
  std::vector<nlohmann::json> all;
  std::ifstream file(path);
  for (std::string text; std::getline(file, text);) all.push_back(nlohmann::json::parse(text));
  return all;
}
unsigned mode_of(const std::string& path) {
  struct stat status {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status.st_mode & 0777u;
}
struct umask_of {
  explicit umask_of(mode_t m) : before(::umask(m)) {}
  ~umask_of() { ::umask(before); }
  mode_t before;
};

}  // namespace

TEST_CASE("event log: a restarted run continues the chain") {
  const scratch folder;
  const std::string path = folder / "events.jsonl";
  gs::event_log_head first;
  {
    gs::event_log log(path);
    CHECK(log.head() == gs::event_log_head{"events.jsonl", 0, std::string(64, '0')});
    log.write("start", {{"mesh", "2x4"}});
    log.write("checkpoint", {{"step", 10}});
    first = log.head();
    CHECK(first.records == 2);
  }
  gs::event_log log(path);
  CHECK(log.head() == first);
  log.write("load", {{"step", 10}, {"text", "\xff is not UTF-8"}});
  const gs::event_log_finding found = gs::check_event_log(path, std::vector{first, log.head()});
  CHECK(found.text == "events.jsonl: 3 records, unaltered; those up to record 3 are sealed");
  const auto all = records_in(path);
  REQUIRE(all.size() == 3);
  CHECK(all[2]["n"] == 3);
  CHECK(all[2]["event"] == "load");
  CHECK(all[2]["fields"]["step"] == 10);
  CHECK(all[2]["previous"] == all[1]["hash"]);
  CHECK(all[2]["time"].get<std::string>().size() == std::string("2026-11-24T08:23:13.123456Z").size());
}

TEST_CASE("event log: a line that was cut off by the end of its process stays, and is in the chain") {
  const scratch folder;
  const std::string path = folder / "events.jsonl";
  for (const std::size_t cut : {1u, 40u, 299u}) {
    {
      gs::event_log log(path);
      log.write("start");
      log.write("straggler", {{"rank", 3}, {"filling", std::string(200, 'x')}});
    }
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - cut);
    CHECK(gs::check_event_log(path).is_cut);
    gs::event_log log(path);
    log.write("stop");
    const gs::event_log_finding found = gs::check_event_log(path);
    CHECK_MESSAGE(found.unaltered, found.text);
    CHECK(log.head().records == found.records);
  }
  std::string text = content_of(path);
  text[text.find("straggler", 20)] = 'S';  // in the first truncated line
  CHECK_FALSE(gs::check_event_log_text("events.jsonl", text).unaltered);
}

TEST_CASE("event log: what is no log, or was altered, is neither continued nor changed") {
  const scratch folder;
  const std::string path = folder / "events.jsonl";
  for (const std::string content : {"my notes\n", "{\"n\":1}\n", "\n"}) {
    set_content(path, content);
    CHECK(complaint([&] { gs::event_log log(path); }).find("events.jsonl: record 1 is altered or added") != std::string::npos);
    CHECK(content_of(path) == content);
  }
}

TEST_CASE("event log: only its user reads it, whatever the umask; links are not followed; one writer") {
  const scratch folder;
  const umask_of none(0);
  const std::string path = folder / "deep/er/events.jsonl";
  gs::event_log log(gs::simulate<line>(2), folder / "deep/er");
  CHECK(log.path() == folder / "deep/er/events-00000.jsonl");
  CHECK(mode_of(log.path()) == 0600);
  CHECK(mode_of(folder / "deep") == 0700);
  CHECK(mode_of(folder / "deep/er") == 0700);
  {
    gs::event_log other(path);
    other.write("start");
  }
  REQUIRE(::chmod(path.c_str(), 0644) == 0);
  gs::event_log again(path);
  CHECK(mode_of(path) == 0600);
  CHECK(complaint([&] { gs::event_log second(path); }) == path + ": another process writes to it");

  set_content(folder / "secret", "");
  REQUIRE(::symlink((folder / "secret").c_str(), (folder / "link.jsonl").c_str()) == 0);
  CHECK(complaint([&] { gs::event_log linked(folder / "link.jsonl"); }).find("is a symbolic link") != std::string::npos);
  CHECK(content_of(folder / "secret").empty());
  REQUIRE(::mkfifo((folder / "pipe.jsonl").c_str(), 0600) == 0);
  CHECK(complaint([&] { gs::event_log pipe(folder / "pipe.jsonl"); }).find("is not a regular file") != std::string::npos);
  CHECK(contains(complaint([&] { gs::event_log log_in(gs::simulate<line>(1), folder / "secret"); }), "cannot be made as a directory"));
}

TEST_CASE("event log: start, mesh and plan") {
  const scratch folder;
  const gs::any_cluster on = gs::simulate<line>(3);
  gs::event_log log(on, folder / "");
  gs::executable<products> run(on, {{'A', 6}, {'B', 4}, {'C', 2}});
  log.write_plan("products", run.executor());
  const auto all = records_in(log.path());
  REQUIRE(all.size() == 3);
  CHECK(all[0]["event"] == "start");
  CHECK(all[0]["fields"]["processes"] == 1);
  CHECK(all[1]["fields"]["axes"]["x"] == 3);
  CHECK(all[2]["fields"]["program"] == "products");
  CHECK(all[2]["fields"]["arena_bytes"] == run.executor().arena_bytes());
  CHECK(all[2]["fields"]["sha256"].get<std::string>().size() == 64);
}

TEST_CASE("event log: a full disk keeps records in memory, and tells once") {
  const scratch folder;
  std::vector<std::string> told;
  gs::event_log log(folder / "events.jsonl", [&](const std::string& text) { told.push_back(text); });
  log.write("start");
  const gs::event_log_head before = log.head();
  {
    const small_disk disk(std::filesystem::file_size(folder / "events.jsonl") + 100);  // in the middle of the second record
    log.write("checkpoint");
    log.write("checkpoint");
    CHECK(log.head() == before);
  }
  CHECK(told.size() == 1);
  CHECK(told.at(0).find("events.jsonl: cannot be written: File too large; later events are kept") != std::string::npos);
  CHECK(gs::check_event_log(folder / "events.jsonl", std::vector{before}).is_cut);
  log.write("stop");
  CHECK(log.head().records == 4);
  CHECK(gs::check_event_log(folder / "events.jsonl", std::vector{before, log.head()}).unaltered);
}

TEST_CASE("event log: a report that throws does not reach the run, and is made once") {
  const scratch folder;
  int reports = 0;
  gs::event_log log(folder / "events.jsonl", [&](const std::string&) {
    ++reports;
    throw gs::error("the user's report");
  });
  {
    const small_disk disk(0);
    log.write("start");
    CHECK(log.head().records == 0);
  }
  CHECK(reports == 1);
  log.write("stop");
  CHECK(log.head().records == 2);
}

TEST_CASE("event log: all open logs get not_finite, with its step, when a run throws it; moved and closed logs do not harm") {
  const scratch folder;
  const gs::any_cluster on = gs::simulate<line>(2);
  gs::executable<loss_of> run(on, {{'A', 4}});
  gs::event_log closed(folder / "closed.jsonl");
  {
    gs::event_log first(folder / "a.jsonl"), second = std::move(first), other(folder / "b.jsonl");
    closed = gs::event_log(folder / "last.jsonl");
    std::vector<float> x(4, 1);
    run(x);
    x[3] = std::numeric_limits<float>::infinity();
    CHECK_THROWS_AS(run(x), gs::not_finite_error);
  }
  CHECK_THROWS_AS(run(std::vector<float>(4, std::numeric_limits<float>::quiet_NaN())), gs::not_finite_error);
  CHECK(records_in(folder / "closed.jsonl").empty());
  CHECK(records_in(folder / "last.jsonl").size() == 2);
  for (const char* name : {"a.jsonl", "b.jsonl"}) {
    const auto all = records_in(folder / name);
    REQUIRE(all.size() == 1);
    CHECK(all[0]["event"] == "not_finite");
    CHECK(all[0]["fields"]["step"].is_number());
    CHECK(!all[0]["fields"]["text"].get<std::string>().empty());
  }
}

TEST_CASE("event log: abort, when a process leaves its run by an exception, and when it gives up a wait") {
  const scratch folder;
  gs::event_log log(folder / "events.jsonl");
  const gs::any_cluster on = gs::simulate<line>(2);
  CHECK_THROWS(gs::run_scope(on).run([] { throw std::runtime_error("no more data"); }));
  CHECK_THROWS(gs::run_scope(on).run([] { throw gs::not_finite_error("told before", 3); }));
  std::atomic<int> ended = 0;
  const gs::datagram_watch::reaction before = gs::datagram_watch::reactions();
  gs::datagram_watch::reactions() = {[](const std::string&) {}, [&](int status) { ended = status; }};
  {
    gs::datagram_watch watch(0, {.warn = 0, .fail = 0.05});
    const gs::wait_watch::wait waiting(&watch, "a barrier");
    for (int i = 0; i < 1000 && ended == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  gs::datagram_watch::reactions() = before;
  CHECK(ended == gs::wait_deadlines::restart_status);
  const auto all = records_in(folder / "events.jsonl");
  REQUIRE(all.size() >= 2);  // of a wait that continues: the test does not end it
  CHECK(all[0]["event"] == "abort");
  CHECK(all[0]["fields"]["text"] == "no more data");
  CHECK(all[1]["event"] == "abort");
  CHECK(contains(all[1]["fields"]["text"].get<std::string>(), "it gave up: it waits for "));
}

TEST_CASE("event log: threads write whole records in one chain; large fields are left out") {
  const scratch folder;
  gs::event_log log(folder / "events.jsonl");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) log.write("mine", {{"thread", t}});
    });
  for (std::thread& t : threads) t.join();
  log.write("large", {{"text", std::string(100000, 'x')}});
  CHECK(gs::check_event_log(folder / "events.jsonl").records == 201);
  CHECK(records_in(folder / "events.jsonl").back()["fields"] == nlohmann::json{{"left_out_bytes", 100011}});
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/monitor/run_history.hpp>

#include "../../io/scratch.hpp"

#include <gshard/survive/monitor/telemetry.hpp>

#include <doctest/doctest.h>

#include <sys/stat.h>

#include <cmath>
#include <string>
#include <vector>

namespace gs = gshard;

namespace {
using history_mesh = gs::mesh<gs::axis<"x">>;
}

TEST_CASE("history: what telemetry and event log wrote is read") {
  const scratch folder;
  const gs::any_cluster on = gs::simulate<history_mesh>(2);
  for (int start = 0; start < 2; ++start) {
    gs::event_log log(on, folder / "run");
    gs::telemetry watch(on, {.directory = folder / "run", .lists_every = 1});
    for (std::uint32_t n = 0; n < 3; ++n) {
      const auto step = watch.step(n);
      watch.value("loss", n == 1 ? std::nan("") : 1.0 / (n + 1));
      watch.values("load", std::vector<float>{1, 2});
      watch.predicted(0.5);
    }
    log.write("checkpoint", {{"step", 2}});
  }
  const gs::run_history h = gs::read_run_history(folder / "run");
  REQUIRE(h.processes == 1);
  CHECK(h.repeated == 3);
  REQUIRE(h.starts.size() == 2);
  CHECK(h.starts[0].mesh == std::vector<std::pair<std::string, int>>{{"x", 2}});
  CHECK(h.starts[1].time >= h.starts[0].time);
  for (const gs::start_history& s : h.starts) {
    CHECK(s.steps == 3);
    CHECK(s.first == 0);
    CHECK(s.last == 2);
  }
  const gs::detail::run_summary& sums = h.summary;
  CHECK(sums.steps() == 3);
  CHECK(sums.predicted.at(2).sum == 0.5);
  REQUIRE(sums.values.size() == 1);
  CHECK(h.names.at(sums.values.begin()->first) == "loss");
  const std::vector<gs::detail::range_of>& loss = sums.values.begin()->second;
  CHECK(loss.at(2).n == 1);
  CHECK(loss.at(2).mean() == doctest::Approx(1.0 / 3));
  CHECK(loss.at(1).others == 1);
  REQUIRE(sums.lists.size() == 1);
  CHECK(h.names.at(sums.lists.begin()->first) == "load");
  CHECK(sums.lists.begin()->second.cells.at(2).at(1).mean() == 2);
  REQUIRE(h.events.size() == 6);
  CHECK(h.events.back().event == "checkpoint");
  CHECK(h.events.back().fields["step"] == 2);
  CHECK(std::abs(h.events.back().time - sums.ended) < 60);
  CHECK(h.logs_hold);
  CHECK(h.unread == 0);
}

TEST_CASE("history: an event has the step of its process at its time, or that of process 0") {
  const scratch folder;
  set_content(folder / "telemetry-00000.jsonl",
              "{\"step\":7,\"time\":1764000010,\"seconds\":1}\n{\"step\":8,\"time\":1764000020,\"seconds\":1}\n");
  set_content(folder / "telemetry-00001.jsonl", "{\"step\":4,\"time\":1764000030,\"seconds\":1}\n");
  for (const char* file : {"events-00000.jsonl", "events-00001.jsonl", "events-00002.jsonl"}) {
    std::string log;
    for (const char* time : {"16:00:05", "16:00:15", "16:00:25"})
      log += std::string("{\"time\":\"2025-11-24T") + time + ".000000Z\",\"event\":\"mine\",\"fields\":{}}\n";
    set_content(folder / file, log);
  }
  const gs::run_history h = gs::read_run_history(folder / "");
  std::vector<double> steps[3];
  for (const gs::event_history& e : h.events) steps[e.process].push_back(e.step);
  CHECK(steps[0] == std::vector<double>{7, 8, 8});
  CHECK(steps[1] == std::vector<double>{4, 4, 4});
  CHECK(steps[2] == std::vector<double>{7, 8, 8});
}

TEST_CASE("history: a log that tells of an earlier alteration does not hold") {
  const scratch folder;
  gs::event_log(folder / "events-00000.jsonl").write("log_altered", {{"finding", "record 3 is missing"}});
  const gs::run_history h = gs::read_run_history(folder / "");
  CHECK_FALSE(h.logs_hold);
  REQUIRE(h.logs.size() == 1);
  CHECK(h.logs[0] == "events-00000.jsonl: record 1 tells that the log was altered before it: record 3 is missing");
}

TEST_CASE("history: a skipped batch is no step, and was not done twice") {
  const scratch folder;
  const auto line = [](int step, bool skipped, double time) {
    const std::string mark = skipped ? ",\"skipped\":true" : "";
    return "{\"step\":" + std::to_string(step) + mark + ",\"time\":" + std::to_string(time) + ",\"seconds\":1}\n";
  };
  const std::string begin = "{\"telemetry\":1,\"time\":1000}\n", path = folder / "telemetry-00000.jsonl";
  set_content(path, begin + line(0, true, 1001) + line(0, false, 1002) + line(1, true, 1003) + line(1, true, 1004) + line(1, false, 1005) +
                        line(2, false, 1006) + line(3, true, 1007));
  gs::run_history h = gs::read_run_history(folder / "");
  CHECK(h.skipped == 4);
  CHECK(h.repeated == 0);
  CHECK(h.summary.steps() == 3);
  CHECK(h.summary.last == 2);
  REQUIRE(h.starts.size() == 1);
  CHECK(h.starts[0].steps == 3);
  CHECK(h.starts[0].first == 0);
  CHECK(h.starts[0].last == 2);
  CHECK(h.starts[0].ended == 1007);
  CHECK(h.unread == 0);
  // A restart from step 1: batches that are skipped again count once.
  set_content(path, begin + line(0, true, 1001) + line(0, false, 1002) + line(1, true, 1003) + line(1, false, 1004) + begin +
                        line(1, true, 1005) + line(1, false, 1006) + line(2, false, 1007));
  h = gs::read_run_history(folder / "");
  CHECK(h.repeated == 1);
  CHECK(h.summary.steps() == 3);
  CHECK(h.skipped == 2);
  // A restart that ends with a skipped batch, before its first step.
  set_content(path, begin + line(0, false, 1001) + line(1, false, 1002) + line(2, false, 1003) + begin + line(1, true, 1005));
  h = gs::read_run_history(folder / "");
  CHECK(h.repeated == 2);
  CHECK(h.summary.last == 0);
  CHECK(h.skipped == 1);
  set_content(path, begin + line(0, false, 1001) + begin + line(0, true, 1005));
  h = gs::read_run_history(folder / "");
  CHECK(h.summary.empty());
  CHECK(h.skipped == 1);
  set_content(path, begin + line(0, true, 1001));
  h = gs::read_run_history(folder / "");
  CHECK(h.skipped == 1);
  CHECK(h.summary.empty());
}

TEST_CASE("history: of values that several processes give, those of the first are kept; lines that are no records are counted") {
  const scratch folder;
  set_content(folder / "telemetry-00000.jsonl",
              "{\"telemetry\":1}\n{\"step\":1,\"seconds\":0.5,\"values\":{\"loss\":\"NaN\",\"a\":\"-Infinity\"}}\n{\"st");
  set_content(
      folder / "telemetry-00002.jsonl",
      "\n[]\n{\"step\":-1,\"seconds\":1}\n{\"step\":1,\"seconds\":\"x\"}\n{\"step\":1,\"seconds\":0.25,\"values\":{\"loss\":3,\"mine\":4},"
      "\"received\":3,\"lists\":{\"l\":1}}\n");
  set_content(folder / "events-00000.jsonl", "{\"n\":1}\nnonsense\n");
  set_content(folder / "events-1.txt", "not read");
  const gs::run_history h = gs::read_run_history(folder / "");
  REQUIRE(h.processes == 3);
  CHECK(h.summary.records == 2);
  CHECK(h.summary.rows.at(0).seconds.at(0).sum == 0.5);
  CHECK(h.summary.rows.at(1).seconds.at(0).n == 0);
  CHECK(h.summary.rows.at(2).seconds.at(0).sum == 0.25);
  REQUIRE(h.summary.values.size() == 3);
  for (const auto& [name, all] : h.summary.values) {
    CHECK(all.at(0).n == (h.names[name] == "mine"));
    CHECK(all.at(0).others == (h.names[name] != "mine"));
  }
  CHECK(h.unread == 5);
  CHECK_FALSE(h.logs_hold);
  CHECK(h.events.empty());
  CHECK(contains(complaint([&] { gs::read_run_history(folder / "absent"); }), "absent: cannot be read: No such file"));
  const scratch empty;
  CHECK(contains(complaint([&] { gs::read_run_history(empty / ""); }), "has no telemetry-*.jsonl or events-*.jsonl"));
  for (const std::string name : {"telemetry-00000.jsonl", "events-00000.jsonl"}) {  // opening a pipe would wait for its writer
    const scratch piped;
    REQUIRE(::mkfifo((piped / name).c_str(), 0600) == 0);
    CHECK(contains(complaint([&] { gs::read_run_history(piped / ""); }), name + ": is not a regular file"));
  }
  CHECK(gs::detail::unix_seconds_of("2025-11-24T16:00:00.250000Z") == doctest::Approx(1764000000.25).epsilon(1e-12));
  CHECK(std::isnan(gs::detail::unix_seconds_of("yesterday")));
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/monitor/run_page_data.hpp>

#include "../sample_history.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace gs = gshard;

TEST_CASE("page of a run: what was done again counts once, as it was done last") {
  const gs::run_history h = sample_history(3, 100, 4);
  const auto j = gs::detail::run_page_data(h, "a run").json();
  CHECK(j["steps"] == 100);
  CHECK(j["first"] == 0);
  CHECK(j["last"] == 99);
  CHECK(j["repeated"] == 4);
  CHECK(j["restarts"] == 1);
  CHECK(j["stragglers"] == 1);
  CHECK(j["starts"][0]["last"] == 39);
  CHECK(j["starts"][0]["end"] == "no word");
  CHECK(j["starts"][1]["first"] == 36);
  CHECK(j["starts"][1]["end"] == "stop");
  CHECK(j["buckets"]["count"] == 100);
  CHECK(j["rows"].size() == 3);
  CHECK(j["received"].size() == 2);
  CHECK(j["received"][0]["per_step"][50].get<double>() == doctest::Approx(8 << 20).epsilon(1e-3));  // four digits
  CHECK(j["received"][0]["bytes"] == 300.0 * (8 << 20));
  CHECK(j["values"][0]["name"] == "loss");
  CHECK(j["values"][0]["not_finite"] == std::vector<int>{25});
  CHECK(j["values"][0]["mean"][25].is_null());
  CHECK(j["values"][0]["mean"][0].get<double>() == doctest::Approx(7.5));
  CHECK(j["lists"][0]["columns"][50].size() == 4);
  CHECK(j["lists"][0]["columns"][51].is_null());
  CHECK(j["mean_step"].get<double>() > .4);
  CHECK(j["events"].size() == h.events.size());
}

TEST_CASE("page of a run: its size does not grow with steps, processes, experts and events") {
  for (const auto& [processes, steps, experts] : {std::tuple(2u, 100000u, 16u), std::tuple(300u, 1000u, 2048u)}) {
    gs::run_history h = sample_history(processes, steps, experts);
    while (h.events.size() < 20000) h.events.push_back(h.events[h.events.size() / 2]);
    const auto j = gs::detail::run_page_data(h, "").json();
    CHECK(j.dump().size() < 1900000);
    CHECK(j["values"][0]["mean"].size() <= 800);
    CHECK(j["rows"].size() <= 128);
    CHECK(j["lists"][0]["columns"][0].size() <= 128);
    CHECK(j["events"].size() == 2000);
    CHECK(j["event_count"] == 20000);
  }
}

namespace {
/// A run in which each start did steps 0 to 9, one per second. `events`: process, start, second and event; seconds count from the start of
/// the telemetry.
std::vector<std::string> ends_of(std::size_t starts, std::vector<std::tuple<int, std::size_t, double, std::string>> events) {
  gs::run_history h;
  for (std::size_t i = 0; i < starts; ++i)
    for (int p = 0; p < 2; ++p) {
      h.starts.push_back({100.0 * double(i), p, 2, "node", "0.1.0", {}});
      h.starts.back().steps = 10;
      h.starts.back().last = 9;
      h.starts.back().ended = h.starts.back().time + 10;
    }
  for (const auto& [process, start, second, event] : events)
    h.events.push_back({100.0 * double(start) + second, process, event, nlohmann::ordered_json::object(), 0});
  std::stable_sort(h.events.begin(), h.events.end(), [](const auto& a, const auto& b) { return a.time < b.time; });
  std::vector<std::string> all;
  const auto page = gs::detail::run_page_data(h, "").json();
  for (const auto& s : page["starts"]) all.push_back(s["end"]);
  return all;
}
using ends = std::vector<std::string>;
}  // namespace

TEST_CASE("page of a run: how each start ended") {
  CHECK(ends_of(2, {}) == ends{"no word", ""});
  // The log starts 2 s before the telemetry, and the checkpointer has loaded before it.
  for (const double begins : {-2.0, 1.0}) {
    CAPTURE(begins);
    std::vector<std::tuple<int, std::size_t, double, std::string>> logs;
    for (int p = 0; p < 2; ++p)
      for (std::size_t i = 0; i < 5; ++i) {
        logs.emplace_back(p, i, begins, "start");
        logs.emplace_back(p, i, begins + .1, "mesh");
        if (i > 0) logs.emplace_back(p, i, begins + .2, "load");
      }
    const std::size_t begun = logs.size();
    for (int p = 0; p < 2; ++p) {
      logs.emplace_back(p, 0, 10.5, "not_finite");
      logs.emplace_back(p, 0, 10.6, "abort");
      logs.emplace_back(p, 1, 5, "not_finite");
      logs.emplace_back(p, 1, 5.1, "load");
      logs.emplace_back(p, 1, 5.1, "roll_back");
      logs.emplace_back(p, 1, 10.5, "abort");
      logs.emplace_back(p, 2, 10.5, "stop");
      logs.emplace_back(p, 2, 10.6, "checkpoint");
      logs.emplace_back(p, 3, 5, "not_finite");
      logs.emplace_back(p, 3, 5.1, "roll_back");
      logs.emplace_back(p, 4, 5, "not_finite");
      logs.emplace_back(p, 4, 5.1, "roll_back");
      logs.emplace_back(p, 4, 10.6, "finish");
    }
    CHECK(ends_of(5, logs) == ends{"not_finite", "abort", "stop", "no word", "finish"});
    // Starts that ended before their telemetry began are not counted.
    logs.resize(begun);
    logs.emplace_back(0, 0, 10.5, "finish");
    logs.emplace_back(0, 0, 50, "start");
    logs.emplace_back(0, 0, 51, "abort");
    logs.emplace_back(0, 0, 55, "start");
    logs.emplace_back(0, 0, 56, "abort");
    logs.emplace_back(0, 4, 50, "start");
    logs.emplace_back(0, 4, 51, "abort");
    CHECK(ends_of(5, logs) == ends{"finish", "no word", "no word", "no word", ""});
  }
  CHECK(ends_of(1, {{0, 0, 10.5, "not_finite"}, {1, 0, 10.5, "not_finite"}}) == ends{"not_finite"});
  CHECK(ends_of(1, {{0, 0, 5, "not_finite"}, {1, 0, 4.9, "not_finite"}}) == ends{""});  // further steps followed
  CHECK(ends_of(2, {{0, 0, 11, "not_finite"}, {0, 0, 98, "continued"}, {0, 0, 99, "start"}}) == ends{"not_finite", ""});
}

TEST_CASE("page of a run: a checkpoint counts once, and so does a skipped batch") {
  gs::run_history h;
  const auto saved = [&](int process, int step, const char* directory) {
    h.events.push_back({0, process, "checkpoint", {{"step", step}, {"directory", directory}}, 0});
  };
  for (int p = 0; p < 3; ++p) saved(p, 10, "step-0000000010");
  for (int p = 1; p < 3; ++p) saved(p, 20, "step-0000000020");  // process 0 was killed
  for (int p = 0; p < 2; ++p) saved(p, 20, "step-0000000020.1");
  for (int n = 0; n < 2; ++n)
    for (int p = 0; p < 2; ++p) h.events.push_back({0, p, "checkpoint", {{"step", 30}}, 0});  // saved by the program, twice
  h.events.push_back({0, 0, "skipped", {{"step", 4}}, 0});
  CHECK(gs::detail::run_page_data(h, "").json()["checkpoints"] == 5);
  CHECK(gs::detail::run_page_data(h, "").json()["skipped"] == 1);
  h.processes = 1;  // from telemetry, which counts repeats after a restart once
  h.skipped = 2;
  CHECK(gs::detail::run_page_data(h, "").json()["skipped"] == 2);
}

TEST_CASE("page of a run: without steps, and without anything") {
  gs::run_history h;
  auto j = gs::detail::run_page_data(h, "").json();
  CHECK_FALSE(j.contains("steps"));
  h = sample_history(1, 20, 1);
  h.summary = {};
  h.processes = 0;
  h.starts.clear();
  j = gs::detail::run_page_data(h, "").json();
  CHECK_FALSE(j.contains("steps"));
  CHECK(j["events"].size() == h.events.size());
}

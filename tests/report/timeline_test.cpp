// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/report/timeline.hpp>

#include "../complaint.hpp"
#include "sample_run.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace gs = gshard;

TEST_CASE("trace events: named processes and threads, spans that do not overlap on one, a counter of memory") {
  const gs::run_record& run = sample::small().record;
  const auto d = nlohmann::json::parse(gs::timeline_json(run, sample::plan));
  std::map<std::pair<int, int>, double> end;
  std::map<int, std::string> process;
  std::map<std::pair<int, int>, std::string> thread;
  std::map<std::string, double> seconds;
  std::int64_t received = 0, peak = 0;
  for (const auto& e : d["traceEvents"]) {
    const std::string kind = e["ph"];
    const std::pair<int, int> at{e["pid"], e["tid"]};
    CHECK(at.first > 0);
    if (kind == "M") {
      if (e["name"] == "process_name") process[at.first] = e["args"]["name"];
      if (e["name"] == "thread_name") thread[at] = e["args"]["name"];
    } else if (kind == "X") {
      const double ts = e["ts"], dur = e["dur"];
      CHECK(dur >= 0);
      CHECK(ts >= end[at] - 1e-6);
      end[at] = ts + dur;
      CHECK(thread[at] == e["cat"].get<std::string>());
      if (at.first == 1) seconds[e["cat"]] += dur * 1e-6;
      CHECK(contains(e["args"]["text"], "->"));
      if (e["cat"] == "collective") {
        CHECK(e["args"]["bytes_received"] > 0);
        CHECK(contains(e["args"]["why"], "for "));
        if (at.first == 1) received += e["args"]["bytes_received"].get<std::int64_t>();
      }
      if (e["cat"] == "wait") CHECK(e["name"].get<std::string>().starts_with("wait for "));
    } else {
      REQUIRE(kind == "C");
      CHECK(e["name"] == "memory");
      peak = std::max(peak, e["args"]["bytes"].get<std::int64_t>());
    }
  }
  CHECK(process[1] == "devices 0-14 (15 alike)");
  CHECK(process[2] == "device 15");
  CHECK(thread.size() == 6);
  CHECK(received == sample::plan.bytes_received(sample::small().sizes));
  CHECK(peak == run.memory.peak);
  CHECK(seconds["compute"] == doctest::Approx(run.tracks[0].compute).epsilon(1e-3));  // to the nanosecond
  CHECK(seconds["collective"] == doctest::Approx(run.tracks[0].communicate).epsilon(1e-3));
  CHECK(seconds["wait"] == doctest::Approx(run.tracks[0].wait).epsilon(1e-3));
}

TEST_CASE("times are microseconds in whole nanoseconds; what ends where the next begins still does") {
  CHECK(gs::detail::trace_time(1.2345678901) == 1234567.890);
  CHECK(gs::detail::trace_time(2e-9, 1e-9) == 0.001);
  const double third = 1.0 / 3, half = 0.5;
  const double sum = gs::detail::trace_time(third) + gs::detail::trace_time(half, third);
  CHECK(sum == doctest::Approx(gs::detail::trace_time(half)).epsilon(1e-15));
}

TEST_CASE("a record of another plan is refused") {
  gs::run_record run;
  run.tracks.resize(1);
  run.tracks[0].spans.push_back({3, gs::activity::compute, 0, 1});
  CHECK(contains(complaint([&] { gs::timeline_json(run, gs::plan_view{}); }), "the run has a step 3"));
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/io/report/timeline.hpp>

#include <gshard/sim/run/dry_run.hpp>

#include "../../complaint.hpp"
#include "../../sim/report/sample_run.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gs = gshard;

namespace {

/// A time as Perfetto reads it: truncated to whole nanoseconds.
std::int64_t nanoseconds(const nlohmann::json& microseconds) {
  REQUIRE(microseconds.is_number());
  return microseconds.is_number_integer() ? microseconds.get<std::int64_t>() * 1000 : std::int64_t(microseconds.get<double>() * 1000.0);
}

/// Checks what Perfetto's importer (src/trace_processor/importers/json) and the description of the format require of a trace.
void check_trace(const nlohmann::json& trace) {
  REQUIRE(trace.is_object());
  REQUIRE(trace["traceEvents"].is_array());
  std::map<std::int64_t, std::int64_t> process_of;  // by thread: some versions identify it by its number alone
  std::map<std::int64_t, std::vector<std::int64_t>> open;  // by thread: ends of open spans
  std::map<std::int64_t, std::int64_t> last, last_sample;
  std::set<std::int64_t> named_processes, named_threads;
  for (const auto& e : trace["traceEvents"]) {
    CAPTURE(e.dump());
    for (const char* field : {"name", "ph"}) REQUIRE(e[field].is_string());
    CHECK(!e["name"].get<std::string>().empty());
    for (const char* field : {"pid", "tid"}) {
      REQUIRE(e[field].is_number_integer());
      CHECK(e[field] > 0);  // the kernel's idle process and thread are 0
      CHECK(e[field] <= std::numeric_limits<std::uint32_t>::max());
    }
    REQUIRE(e["args"].is_object());
    const std::int64_t process = e["pid"], thread = e["tid"];
    CHECK(process_of.try_emplace(thread, process).first->second == process);
    const std::string kind = e["ph"], called = e["name"];
    if (kind == "M") {
      if (called == "process_name" || called == "thread_name") {
        CHECK(!e["args"]["name"].get<std::string>().empty());
        CHECK((called == "process_name" ? named_processes.insert(process) : named_threads.insert(thread)).second);
      } else {
        CHECK((called == "process_sort_index" || called == "thread_sort_index"));
        CHECK(e["args"]["sort_index"].is_number_integer());
      }
      continue;
    }
    const std::int64_t begin = nanoseconds(e["ts"]);
    CHECK(begin >= 0);
    CHECK(named_processes.contains(process));
    CHECK(named_threads.contains(thread));
    if (kind == "C") {
      CHECK(!e["args"].empty());
      for (const auto& amount : e["args"]) CHECK(amount.is_number());
      CHECK(begin >= last_sample[process]);
      last_sample[process] = begin;
      continue;
    }
    REQUIRE(kind == "X");
    CHECK(e["cat"].is_string());
    const std::int64_t duration = nanoseconds(e["dur"]), end = begin + duration;
    CHECK(duration >= 0);
    CHECK(begin >= last[thread]);
    last[thread] = begin;
    // Spans nest or are disjoint. Spans of no length may coincide.
    std::vector<std::int64_t>& ends = open[thread];
    while (!ends.empty() && ends.back() <= begin && !(ends.back() == begin && duration == 0)) ends.pop_back();
    CHECK((ends.empty() || end <= ends.back()));
    ends.push_back(end);
    CHECK(ends.size() <= 512);  // Perfetto drops deeper spans
    for (const auto& argument : e["args"]) CHECK(argument.is_primitive());
  }
  for (const auto& [thread, process] : process_of) CHECK(named_processes.contains(process));
}

}  // namespace

TEST_CASE("trace events: named processes and threads, spans that do not overlap on one, a counter of memory") {
  const gs::run_record& run = sample::small().record;
  const auto d = nlohmann::json::parse(gs::timeline_json(run, sample::plan));
  check_trace(d);
  constexpr int first = 10, second = 20;  // processes
  std::map<std::pair<int, int>, double> end;
  std::map<int, std::string> process;
  std::map<std::pair<int, int>, std::string> thread;
  std::map<std::string, double> seconds;
  std::int64_t received = 0, peak = 0;
  double again = 0;
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
      if (at.first == first) seconds[e["cat"]] += dur * 1e-6;
      CHECK(contains(e["args"]["text"], "->"));
      if (e["cat"] == "collective") {
        CHECK(e["args"]["bytes_received"] > 0);
        CHECK(contains(e["args"]["why"], "for "));
        if (at.first == first) received += e["args"]["bytes_received"].get<std::int64_t>();
      }
      if (at.first == first && e["cat"] == "compute" && e["args"].contains("recomputed")) again += dur * 1e-6;
      if (e["cat"] == "wait") CHECK(e["name"].get<std::string>().starts_with("wait for "));
    } else {
      REQUIRE(kind == "C");
      CHECK(e["name"] == "memory");
      peak = std::max(peak, e["args"]["bytes"].get<std::int64_t>());
    }
  }
  CHECK(process[first] == "devices 0-14 (15 alike)");
  CHECK(process[second] == "device 15");
  CHECK(thread.size() == 6);
  CHECK(received == sample::plan.bytes_received(sample::small().sizes));
  CHECK(peak == run.memory.peak);
  double expected = 0;
  for (const gs::step_record& s : run.steps) expected += s.recomputed ? s.seconds : 0;
  CHECK(expected > 0);
  CHECK(again == doctest::Approx(expected).epsilon(1e-3));
  CHECK(seconds["compute"] == doctest::Approx(run.tracks[0].compute).epsilon(1e-3));  // to the nanosecond
  CHECK(seconds["collective"] == doctest::Approx(run.tracks[0].communicate).epsilon(1e-3));
  CHECK(seconds["wait"] == doctest::Approx(run.tracks[0].wait).epsilon(1e-3));
}

TEST_CASE("times are microseconds in whole nanoseconds; what ends where the next begins still does") {
  CHECK(gs::detail::trace_time(1.2345678901) == doctest::Approx(1234567.890));
  CHECK(gs::detail::trace_time(2e-9, 1e-9) == 0.001);
  const double third = 1.0 / 3, half = 0.5;
  const double sum = gs::detail::trace_time(third) + gs::detail::trace_time(half, third);
  CHECK(sum == doctest::Approx(gs::detail::trace_time(half)).epsilon(1e-15));
}

TEST_CASE("every nanosecond is itself to a reader who cuts off what is left of one") {
  int others = 0;
  for (std::int64_t n = 0; n < 200'000; ++n) {
    const std::int64_t far = n * 7'919'777;  // up to half an hour
    for (const std::int64_t time : {n, far}) {
      const double written = nlohmann::json::parse(nlohmann::json(gs::detail::trace_time(double(time) * 1e-9)).dump());
      others += std::int64_t(written * 1000.0) != time || std::llround(written * 1000) != time;
    }
  }
  CHECK(others == 0);
}

TEST_CASE("trace events: of a dry run that recomputes while collectives go on aside, with a straggler") {
  const sample::run& sample = sample::small();
  gs::dry_run_options o;
  o.activations = gs::recompute::always;
  o.faults.stragglers = {{3, 1.5}};
  for (const bool overlap : {false, true}) {
    o.overlap = overlap;
    const gs::run_record run = gs::dry_run(sample::plan, sample.sizes, gs::parse_hardware("tpu-v3:4x2"), o);
    CHECK(run.tracks.size() > 1);
    check_trace(nlohmann::json::parse(gs::timeline_json(run, sample::plan)));
  }
}

TEST_CASE("a record of another plan is refused") {
  gs::run_record run;
  run.tracks.resize(1);
  run.tracks[0].spans.push_back({0, gs::activity::compute, 0, 1});
  CHECK(contains(complaint([&] { gs::timeline_json(run, gs::plan_view{}); }), "a span is of row 0, the run has 0 rows"));
  run.steps.emplace_back().step = 3;
  CHECK(contains(complaint([&] { gs::timeline_json(run, gs::plan_view{}); }), "the run has a step 3"));
}

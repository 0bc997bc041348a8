// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/comm/simulator/run_record.hpp>
#include <gshard/pass/plan.hpp>
#include <gshard/report/describe.hpp>
#include <gshard/report/reason.hpp>
#include <gshard/report/roofline.hpp>
#include <gshard/report/run_json.hpp>
#include <gshard/report/run_text.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

namespace detail {

/// Microseconds in whole nanoseconds, so that what ends where the next begins does so after rounding.
inline double trace_time(double seconds, double since = 0) {
  return double(std::llround(seconds * 1e9) - std::llround(since * 1e9)) / 1000;
}

inline ordered_json trace_name(const char* what, std::size_t process, int thread, const std::string& called) {
  return {{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", thread}, {"args", {{"name", called}}}};
}

inline ordered_json trace_span(const plan_view& plan, const step_record* s, const time_span& span, std::size_t process) {
  const node& step = step_of(plan, span.step);
  ordered_json args{{"step", span.step}, {"text", describe(plan, step)}};
  if (s && span.what != activity::wait) {
    args["part"] = name(s->part);
    args["bound"] = name(s->bound);
    if (s->flops > 0) args["flops"] = s->flops;
    if (s->bytes_touched > 0) args["bytes_touched"] = s->bytes_touched;
    if (s->bytes_received > 0) args["bytes_received"] = s->bytes_received;
    if (s->recomputed) args["recomputed"] = true;
  }
  if (const std::string why = describe_reason(plan, std::size_t(span.step)); !why.empty()) args["why"] = why;
  const std::string called(name(step.kind));
  return {{"name", span.what == activity::wait ? "wait for " + called : called},
          {"cat", name(span.what)},
          {"ph", "X"},
          {"pid", process},
          {"tid", int(span.what) + 1},
          {"ts", trace_time(span.begin)},
          {"dur", trace_time(span.end, span.begin)},
          {"args", std::move(args)}};
}

}  // namespace detail

/// A simulated run in the trace-event format, which ui.perfetto.dev and chrome://tracing open: a process for each class of devices to which
/// the same happens, with a thread each for compute, collectives (with their bytes, and why) and waiting, and a counter for memory. Times
/// are microseconds of the simulation. Throws `gshard::error` if the record is not of this plan.
inline std::string timeline_json(const run_record& run, const plan_view& plan) {
  using json = nlohmann::ordered_json;
  std::vector<const step_record*> by_step(plan.steps.size());
  for (const step_record& s : run.steps) {
    detail::step_of(plan, s.step);
    by_step[std::size_t(s.step)] = &s;
  }
  json events = json::array();
  for (std::size_t i = 0; i < run.tracks.size(); ++i) {
    const device_track& t = run.tracks[i];
    const std::size_t process = i + 1;  // viewers take 0 for the kernel
    std::string called = (t.devices.size() == 1 ? "device " : "devices ") + detail::devices_text(t.devices);
    if (t.devices.size() > 1) called += " (" + std::to_string(t.devices.size()) + " alike)";
    events.push_back(detail::trace_name("process_name", process, 0, called));
    events.push_back({{"name", "process_sort_index"}, {"ph", "M"}, {"pid", process}, {"tid", 0}, {"args", {{"sort_index", i}}}});
    for (const activity a : {activity::compute, activity::collective, activity::wait})
      events.push_back(detail::trace_name("thread_name", process, int(a) + 1, std::string(name(a))));
    for (const time_span& s : t.spans) {
      detail::step_of(plan, s.step);
      events.push_back(detail::trace_span(plan, by_step[std::size_t(s.step)], s, process));
    }
    for (const memory_sample& m : t.memory)
      events.push_back({{"name", "memory"}, {"ph", "C"}, {"pid", process}, {"tid", 0}, {"ts", detail::trace_time(m.time)},
                        {"args", {{"bytes", m.bytes}}}});
  }
  return detail::text_of_json({{"displayTimeUnit", "ms"},
                               {"otherData", {{"program", run.program}, {"network", run.network}, {"source", run.source}}},
                               {"traceEvents", std::move(events)}});
}

}}  // namespace gshard::v0

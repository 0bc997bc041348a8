// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A simulated run as a trace for Perfetto and chrome://tracing.

#include <gshard/core/plan/plan.hpp>
#include <gshard/io/report/run_json.hpp>
#include <gshard/sim/record/run_record.hpp>
#include <gshard/sim/report/describe.hpp>
#include <gshard/sim/report/reason.hpp>
#include <gshard/sim/report/roofline.hpp>
#include <gshard/sim/report/run_text.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace gshard { inline namespace v0 {

namespace detail {

/// Microseconds, rounded to nanoseconds, so that a span ends where the next one begins. Perfetto multiplies by 1000 and truncates, so the
/// result is the first number that truncates to the right nanosecond.
inline double trace_time(double seconds, double since = 0) {
  const std::int64_t nanoseconds = std::llround(seconds * 1e9) - std::llround(since * 1e9);
  double microseconds = double(nanoseconds) / 1000;
  while (std::int64_t(microseconds * 1000) < nanoseconds)
    microseconds = std::nextafter(microseconds, std::numeric_limits<double>::infinity());
  return microseconds;
}

/// The processes of the trace are the tracks of a run. Viewers take 0 for the kernel, and some identify a thread by its number alone, so no
/// two threads have the same number. The compute thread is the main thread of its process, which viewers show first.
inline std::size_t trace_process(std::size_t track) { return 10 * (track + 1); }
inline std::size_t trace_thread(std::size_t process, activity what) { return process + std::size_t(what); }

template <class Argument>
ordered_json trace_label(const char* what, std::size_t process, std::size_t thread, const char* key, const Argument& argument) {
  return {{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", thread}, {"args", {{key, argument}}}};
}

inline ordered_json trace_span(const plan_view& plan, const step_record& s, const time_span& span, std::size_t process) {
  const node& step = step_of(plan, s.step);
  ordered_json args{{"step", s.step}, {"text", describe(plan, step)}};
  if (span.what != activity::wait) {
    args["part"] = name(s.part);
    args["bound"] = name(s.bound);
    if (s.flops > 0) args["flops"] = s.flops;
    if (s.bytes_touched > 0) args["bytes_touched"] = s.bytes_touched;
    if (s.bytes_received > 0) args["bytes_received"] = s.bytes_received;
  }
  if (s.recomputed) args["recomputed"] = true;
  if (const std::string why = describe_reason(plan, std::size_t(s.step)); !why.empty()) args["why"] = why;
  const std::string called = kind_text(step);
  return {{"name", span.what == activity::wait ? "wait for " + called : called},
          {"cat", name(span.what)},
          {"ph", "X"},
          {"pid", process},
          {"tid", trace_thread(process, span.what)},
          {"ts", trace_time(span.begin)},
          {"dur", trace_time(span.end, span.begin)},
          {"args", std::move(args)}};
}

}  // namespace detail

/// A simulated run in the trace-event format, for ui.perfetto.dev and chrome://tracing. Each class of devices with the same events is a
/// process. It has threads for compute, collectives (with bytes and reasons) and waiting, and a counter for memory. Recomputation for the
/// gradient is marked. Times are microseconds of the simulation. Throws `gshard::error` if the record is not of this plan.
inline std::string timeline_json(const run_record& run, const plan_view& plan) {
  using json = nlohmann::ordered_json;
  json events = json::array();
  for (std::size_t i = 0; i < run.tracks.size(); ++i) {
    const device_track& t = run.tracks[i];
    const std::size_t process = detail::trace_process(i);
    std::string called = (t.devices.size() == 1 ? "device " : "devices ") + detail::devices_text(t.devices);
    if (t.devices.size() > 1) called += " (" + std::to_string(t.devices.size()) + " alike)";
    events.push_back(detail::trace_label("process_name", process, process, "name", called));
    events.push_back(detail::trace_label("process_sort_index", process, process, "sort_index", i));
    for (const activity a : {activity::compute, activity::collective, activity::wait}) {
      const std::size_t thread = detail::trace_thread(process, a);
      events.push_back(detail::trace_label("thread_name", process, thread, "name", name(a)));
      events.push_back(detail::trace_label("thread_sort_index", process, thread, "sort_index", int(a)));
    }
    for (const time_span& s : t.spans) events.push_back(detail::trace_span(plan, detail::row_of(run, s), s, process));
    for (const memory_sample& m : t.memory)
      events.push_back({{"name", "memory"}, {"ph", "C"}, {"pid", process}, {"tid", process}, {"ts", detail::trace_time(m.time)},
                        {"args", {{"bytes", m.bytes}}}});
  }
  return text_of_json({{"otherData", {{"program", run.program}, {"network", run.network}, {"source", run.source}}},
                               {"traceEvents", std::move(events)}});
}

}}  // namespace gshard::v0

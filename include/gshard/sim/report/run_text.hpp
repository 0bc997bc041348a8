// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A simulated run as tables for a terminal.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/sim/record/run_record.hpp>
#include <gshard/sim/report/auto_shard.hpp>
#include <gshard/sim/report/describe.hpp>
#include <gshard/sim/report/roofline.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace gshard { inline namespace v0 {

/// "1.5 Tflop"
std::string describe_flops(double flops);

namespace detail {

/// "0-3,8": devices, ascending; at most the first eight ranges.
std::string devices_text(const std::vector<int>& devices);

/// The program's name of a value: the name of a parameter, the letters of an input, or nothing.
std::string_view name_of_value(const plan_view& plan, std::int32_t v);

std::int64_t devices_of(const run_record& run);

/// "data=4, expert=8"
std::string mesh_text(const run_record& run);

std::string percent_text(double part, double whole);

std::string left_pad(const std::string& s, std::size_t width);

/// The parts of a step on the devices of the first track, and their waiting time.
void put_parts(std::string& s, const run_record& run);

void put_kinds(std::string& s, const run_record& run, const plan_view& plan);

/// The predicted and the measured seconds of each kind of operation.
void put_measured(std::string& s, const run_record& run, const plan_view& plan);

void put_memory(std::string& s, const run_record& run, const plan_view& plan);

}  // namespace detail

/// A simulated run as tables for a terminal. The first table has the seconds of its step, and the bytes received by devices if they were
/// counted. The second has the parts of the step on the devices of the first track, with their waiting time. Parts that overlap add up to
/// more than the step. The others have the work and the limit of each kind of operation (a roofline), and the measured times of a real run.
/// The last have the memory peak of the device that holds most, and the assumptions. Times of operations and their shares are those of all
/// steps, each alone on a device without faults. Throws `gshard::error` if the record is not of this plan.
std::string describe(const run_record& run, const plan_view& plan);

#if GSHARD_HAS_BODIES

GSHARD_INLINE std::string describe_flops(double flops) {
  const char* const units[] = {"flop", "kflop", "Mflop", "Gflop", "Tflop", "Pflop"};
  std::size_t u = 0;
  for (; flops >= 1000 && u < 5; ++u) flops /= 1000;
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %s", flops, units[u]);
  return text;
}

namespace detail {

GSHARD_INLINE std::string devices_text(const std::vector<int>& devices) {
  std::string s;
  int ranges = 0;
  for (std::size_t i = 0; i < devices.size(); ++ranges) {
    if (ranges == 8) return s + ",...";
    std::size_t end = i + 1;
    while (end < devices.size() && devices[end] == devices[end - 1] + 1) ++end;
    s.append(s.empty() ? "" : ",").append(std::to_string(devices[i]));
    if (end > i + 1) s.append("-").append(std::to_string(devices[end - 1]));
    i = end;
  }
  return s;
}

GSHARD_INLINE std::string_view name_of_value(const plan_view& plan, std::int32_t v) {
  const std::int32_t root = plan.lifetimes[std::size_t(v)].root;
  for (const parameter& p : plan.parameters)
    if (p.value == v || p.value == root) return p.name.view();
  for (const port& p : plan.inputs)
    if (p.value == v || p.value == root) return p.name.view();
  return {};
}

GSHARD_INLINE std::int64_t devices_of(const run_record& run) {
  std::int64_t n = 1;
  for (const int extent : run.extents) n *= extent;
  return n;
}

GSHARD_INLINE std::string mesh_text(const run_record& run) {
  std::string s;
  for (std::size_t a = 0; a < run.axes.size() && a < run.extents.size(); ++a)
    s.append(a ? ", " : "").append(run.axes[a]).append("=").append(std::to_string(run.extents[a]));
  return s;
}

GSHARD_INLINE std::string percent_text(double part, double whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", whole > 0 ? 100 * part / whole : 0);
  return text;
}

GSHARD_INLINE std::string left_pad(const std::string& s, std::size_t width) {
  return s.size() < width ? std::string(width - s.size(), ' ') + s : s;
}

GSHARD_INLINE void put_parts(std::string& s, const run_record& run) {
  double whole = run.tracks.empty() ? 0 : run.tracks[0].wait;
  for (const double part : run.parts) whole += part;
  s += "parts";
  if (run.tracks.size() > 1) s += " of the step, on the devices named first";
  if (whole > 1.001 * run.seconds) s.append(", some at the same time: together ").append(describe_seconds(whole));
  s += "\n";
  const auto put = [&](std::string_view part, double seconds) {
    if (seconds > 0)
      s.append("  ").append(pad(std::string(part), 24)).append(left_pad(describe_seconds(seconds), 12))
          .append(left_pad(percent_text(seconds, whole), 9)).append("\n");
  };
  for (std::size_t p = 0; p < run.parts.size(); ++p) put(name(step_part(p)), run.parts[p]);
  if (!run.tracks.empty()) put("waiting", run.tracks[0].wait);
}

GSHARD_INLINE void put_kinds(std::string& s, const run_record& run, const plan_view& plan) {
  const double whole = seconds_of_steps(run);
  s.append("operations, each alone on a device that is not slow and does not wait: together ").append(describe_seconds(whole)).append("\n");
  s += "  operation              steps         work      memory     network  flop/B  bound           time    share\n";
  for (const kind_record& k : kinds_of(run, plan)) {
    char intensity[32];
    std::snprintf(intensity, sizeof intensity, "%.3g", k.intensity());
    s.append("  ").append(pad(std::string(name(k.kind)), 22)).append(left_pad(std::to_string(k.steps), 6)).append(" ");
    s.append(left_pad(describe_flops(k.flops), 12)).append(left_pad(describe_bytes(k.bytes_touched), 12));
    s.append(left_pad(describe_bytes(k.bytes_received), 12)).append(left_pad(intensity, 8)).append("  ");
    s.append(pad(std::string(name(k.bound)), 10)).append(left_pad(describe_seconds(k.seconds), 10));
    s.append(left_pad(percent_text(k.seconds, whole), 9)).append("\n");
  }
}

GSHARD_INLINE void put_measured(std::string& s, const run_record& run, const plan_view& plan) {
  if (run.measured_seconds <= 0) return;
  const auto put = [&](std::string_view what, double predicted, double measured) {
    s.append("  ").append(pad(std::string(what), 22)).append(left_pad(describe_seconds(predicted), 12));
    s.append(left_pad(describe_seconds(measured), 12)).append(left_pad(percent_text(predicted - measured, measured), 11)).append("\n");
  };
  s += "predicted and measured on this process; asynchronous collectives: the measured wait\n";
  s += "  operation                predicted    measured  difference\n";
  for (const kind_record& k : kinds_of(run, plan))
    if (k.seconds > 0 || k.measured > 0) put(name(k.kind), k.seconds, k.measured);
  put("the run", run.seconds, run.measured_seconds);
}

GSHARD_INLINE void put_memory(std::string& s, const run_record& run, const plan_view& plan) {
  const memory_record& m = run.memory;
  s.append("memory of the fullest device: ").append(describe_bytes(m.peak));
  if (m.limit > 0)
    s.append(" of ").append(describe_bytes(m.limit)).append(m.peak > m.limit ? ": exceeds the limit" : "");
  if (std::size_t(m.step) < plan.steps.size())
    s.append(", at step ").append(std::to_string(m.step)).append(" (").append(kind_text(step_of(plan, m.step))).append(")");
  s += "\n";
  for (std::size_t k = 0; k < m.bytes.size(); ++k)
    if (m.bytes[k] > 0)
      s.append("  ").append(pad(std::string(name(memory_kind(k))), 24)).append(left_pad(describe_bytes(m.bytes[k]), 12))
          .append(left_pad(percent_text(double(m.bytes[k]), double(m.peak)), 9)).append("\n");
  if (m.padding > 0) s.append("  of it padding           ").append(left_pad(describe_bytes(m.padding), 12)).append("\n");
  if (!m.largest.empty()) s += "  largest then\n";
  for (const live_tensor& t : m.largest) {
    s.append("  ").append(left_pad(describe_bytes(t.bytes), 12)).append("  ").append(pad(std::string(name(t.kind)), 22));
    put_value(s, plan, t.value);
    if (const std::string_view called = name_of_value(plan, t.value); !called.empty()) s.append(" ").append(called);
    s += "\n";
  }
}

}  // namespace detail

GSHARD_INLINE std::string describe(const run_record& run, const plan_view& plan) {
  std::string s = run.program.empty() ? std::string("a step") : "a step of " + run.program;
  s.append(" takes ").append(describe_seconds(run.seconds)).append(" on ").append(std::to_string(detail::devices_of(run)));
  s.append(" devices (").append(detail::mesh_text(run)).append(")");
  if (!run.network.empty()) s.append(" of ").append(run.network);
  s += "\n";
  constexpr std::size_t most_tracks = 8;
  for (std::size_t i = 0; i < run.tracks.size() && i < most_tracks; ++i) {
    const device_track& t = run.tracks[i];
    s.append("  devices ").append(detail::devices_text(t.devices)).append(": computing ").append(describe_seconds(t.compute));
    s.append(", sending ").append(describe_seconds(t.communicate)).append(", waiting ").append(describe_seconds(t.wait)).append("\n");
  }
  if (run.tracks.size() > most_tracks) s.append("  ").append(std::to_string(run.tracks.size() - most_tracks)).append(" more\n");
  if (!run.received.empty()) {
    const auto [least, most] = std::minmax_element(run.received.begin(), run.received.end());
    s.append("  received by each of ").append(std::to_string(run.received.size())).append(" devices: ").append(describe_bytes(*least));
    s.append(" at least, ").append(describe_bytes(*most)).append(" at most\n");
  }
  double between = 0;
  for (const step_record& k : run.steps) between += k.bytes_between_nodes;
  if (between > 0) s.append("  received by a node from other nodes: ").append(describe_bytes(std::int64_t(between))).append("\n");
  const std::int64_t counted = std::accumulate(run.between_nodes.begin(), run.between_nodes.end(), std::int64_t(0));
  if (counted > 0)
    s.append("  as counted, by ").append(std::to_string(run.between_nodes.size())).append(" devices from other nodes: ")
        .append(describe_bytes(counted)).append("\n");

  detail::put_parts(s, run);
  detail::put_kinds(s, run, plan);
  detail::put_measured(s, run, plan);
  detail::put_memory(s, run, plan);
  if (!run.assumptions.empty()) s += "assumed\n";
  for (const std::string& a : run.assumptions) s.append("  ").append(a).append("\n");
  if (!run.source.empty()) s.append("source: ").append(run.source).append("\n");
  return s;
}

#endif

}}  // namespace gshard::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Roofline numbers of a simulated run: work, bytes and limiting resource of every kind of operation.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/sim/record/run_record.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 {

/// The totals of all steps of one kind on a device.
struct kind_record {
  op_ref kind{};
  int steps = 0;
  double flops = 0;
  std::int64_t bytes_touched = 0, bytes_received = 0;
  double arithmetic = 0, memory = 0, network = 0;  // seconds, each alone
  double seconds = 0;
  double measured = 0;  // seconds in a real run
  limit bound = limit::nothing;  // the limit of most of its seconds

  /// Floating-point operations per byte of memory.
  double intensity() const { return bytes_touched > 0 ? flops / double(bytes_touched) : 0; }
};

/// The highest rates, per second, at which a run prices any step: the roofs of a roofline plot. 0: no step uses the resource.
struct roofs {
  double flops = 0, memory_bytes = 0, link_bytes = 0;
};

namespace detail {
/// Throws `gshard::error` if a record has a step that its plan does not have.
const node& step_of(const plan_view& plan, std::int32_t step);
/// Throws `gshard::error` if a span has a row that its record does not have.
const step_record& row_of(const run_record& run, const time_span& span);
}  // namespace detail

/// The kinds of operations in a run, in the order of falling time. A step that combines moves of several kinds counts as an all_to_all,
/// because it is priced as one. Throws `gshard::error` if the record is not of this plan.
std::vector<kind_record> kinds_of(const run_record& run, const plan_view& plan);

roofs roofs_of(const run_record& run);

/// The sum of the seconds of all steps, each alone: the base of their shares.
double seconds_of_steps(const run_record& run);

#if GSHARD_HAS_BODIES

namespace detail {

GSHARD_INLINE const node& step_of(const plan_view& plan, std::int32_t step) {
  if (step < 0 || std::size_t(step) >= plan.steps.size())
    throw error("report: the run has a step " + std::to_string(step) + ", its plan has " + std::to_string(plan.steps.size()) +
                " steps: the run is of another plan");
  return plan.steps[std::size_t(step)];
}

GSHARD_INLINE const step_record& row_of(const run_record& run, const time_span& span) {
  if (span.row < 0 || std::size_t(span.row) >= run.steps.size())
    throw error("report: a span is of row " + std::to_string(span.row) + ", the run has " + std::to_string(run.steps.size()) + " rows");
  return run.steps[std::size_t(span.row)];
}

}  // namespace detail

GSHARD_INLINE std::vector<kind_record> kinds_of(const run_record& run, const plan_view& plan) {
  std::array<kind_record, most_operations> all{};
  std::array<std::array<double, 5>, most_operations> bound_seconds{};
  for (const step_record& s : run.steps) {
    const op_ref kind = detail::step_of(plan, s.step).kind;
    kind_record& k = all[std::size_t(kind->id)];
    k.kind = kind;
    ++k.steps;
    k.flops += s.flops;
    k.bytes_touched += s.bytes_touched;
    k.bytes_received += s.bytes_received;
    k.arithmetic += s.arithmetic;
    k.memory += s.memory;
    k.network += s.network;
    k.seconds += s.seconds;
    k.measured += s.measured;
    std::array<double, 5>& by = bound_seconds[std::size_t(kind->id)];
    by[std::size_t(s.bound)] += s.seconds;
    k.bound = limit(std::max_element(by.begin(), by.end()) - by.begin());
  }
  std::vector<kind_record> kinds;
  for (const kind_record& k : all)
    if (k.steps > 0) kinds.push_back(k);
  std::stable_sort(kinds.begin(), kinds.end(), [](const kind_record& a, const kind_record& b) { return a.seconds > b.seconds; });
  return kinds;
}

GSHARD_INLINE roofs roofs_of(const run_record& run) {
  roofs r;
  const auto raise = [](double& roof, double amount, double seconds) {
    if (seconds > 0) roof = std::max(roof, amount / seconds);
  };
  for (const step_record& s : run.steps) {
    raise(r.flops, s.flops, s.arithmetic);
    raise(r.memory_bytes, double(s.bytes_touched), s.memory);
    raise(r.link_bytes, double(s.bytes_received), s.network);
  }
  return r;
}

GSHARD_INLINE double seconds_of_steps(const run_record& run) {
  double sum = 0;
  for (const step_record& s : run.steps) sum += s.seconds;
  return sum;
}

#endif

}}  // namespace gshard::v0

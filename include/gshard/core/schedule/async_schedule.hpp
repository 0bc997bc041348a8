// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Asynchronous collectives: when each collective of a plan starts and when it must be complete, to overlap with computation.

#include <gshard/core/base/list.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/core/reshard/cost.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 {

/// The steps during which a communication step is in flight. It starts before step `start` of the plan, and is complete before step
/// `finish`; its own index is in between. A synchronous step is complete before the next step.
struct async_interval {
  std::int32_t start = 0, finish = 0;

  constexpr bool operator==(const async_interval&) const = default;
};

/// The synchronous schedule: every step runs at its own index.
constexpr list<async_interval> in_turn(const plan_view& plan) {
  list<async_interval> all(plan.steps.size());
  for (std::int32_t i = 0; i < std::int32_t(all.size()); ++i) all[std::size_t(i)] = {i, i + 1};
  return all;
}

namespace detail {
/// True if a step may be in flight while others run. Small sums and gathers are one call of a backend, and may not. The same on all
/// devices.
constexpr bool can_overlap(const plan_view& plan, const node& step, const extents& e) {
  if (!traits(step.kind).collective || !traits(step.kind).reshards) return false;
  return plan.bytes_received(step, e) > (traits(step.kind).one_call ? small_sum_bytes : 0);
}

class async_search {
 public:
  constexpr async_search(const plan_view& plan, const extents& e) : plan_(plan), e_(e) {}

  constexpr list<async_interval> run() {
    list<async_interval> all = in_turn(plan_);
    find_starts(all);
    find_ends(all);
    hold_back_gathers(all);
    finish_those_alone(all);
    return all;
  }

 private:
  const plan_view& plan_;
  const extents& e_;

  constexpr const node& step(std::int32_t i) const { return plan_.steps[std::size_t(i)]; }
  constexpr std::size_t root(std::int32_t v) const { return std::size_t(plan_.lifetimes[std::size_t(v)].root); }
  constexpr bool may(std::int32_t i) const { return can_overlap(plan_, step(i), e_); }

  /// A step may start after the last step that uses the memory of an operand.
  constexpr void find_starts(list<async_interval>& all) const {
    list<std::int32_t> used(plan_.values.size(), -1);
    std::int32_t turn = -1;
    for (std::int32_t i = 0; i < std::int32_t(all.size()); ++i) {
      const node& n = step(i);
      if (traits(n.kind).alias) continue;  // reads and writes nothing
      if (traits(n.kind).control) turn = i;
      std::int32_t after = turn;
      for (int k = 0; k < n.inputs; ++k) after = std::max(after, used[root(n.input(k))]);
      if (may(i)) all[std::size_t(i)].start = after + 1;
      for (int k = 0; k < n.inputs; ++k) used[root(n.input(k))] = i;
      for (int o = 0; o < n.outputs; ++o) used[root(n.output(o))] = i;
    }
  }
  /// A step must be complete before the first step that uses a result or overwrites an operand.
  constexpr void find_ends(list<async_interval>& all) const {
    const auto n = std::int32_t(all.size());
    list<std::int32_t> used(plan_.values.size(), n), written(plan_.values.size(), n);
    std::int32_t turn = n;
    for (std::int32_t i = n; i-- > 0;) {
      const node& now = step(i);
      if (traits(now.kind).alias) continue;
      if (may(i)) {
        std::int32_t before = turn;
        for (int o = 0; o < now.outputs; ++o) before = std::min(before, used[root(now.output(o))]);
        for (int k = 0; k < now.inputs; ++k) before = std::min(before, written[root(now.input(k))]);
        all[std::size_t(i)].finish = before;
      }
      if (traits(now.kind).control) turn = i;
      const std::int32_t at = may(i) ? all[std::size_t(i)].start : i;
      for (int k = 0; k < now.inputs; ++k) used[root(now.input(k))] = at;
      for (int o = 0; o < now.outputs; ++o) used[root(now.output(o))] = written[root(now.output(o))] = at;
    }
  }
  /// The results of gathers take memory. Therefore a gather does not start before the result of the previous gather is used.
  constexpr void hold_back_gathers(list<async_interval>& all) const {
    std::int32_t before = 0;
    for (std::int32_t i = 0; i < std::int32_t(all.size()); ++i) {
      if (step(i).kind != op::all_gather || !may(i)) continue;
      async_interval& f = all[std::size_t(i)];
      f.start = std::max(f.start, std::min(before, i));
      before = f.finish;
    }
  }
  /// A step that no other step overlaps with is synchronous: a backend may then send it in fewer messages.
  constexpr void finish_those_alone(list<async_interval>& all) const {
    for (std::int32_t i = 0; i < std::int32_t(all.size()); ++i) {
      if (!may(i)) continue;
      const async_interval f = all[std::size_t(i)];
      bool alone = true;
      for (std::int32_t k = 0; k < std::int32_t(all.size()) && alone; ++k) {
        const async_interval other = all[std::size_t(k)];
        alone = k == i || traits(step(k).kind).alias || other.finish <= f.start || f.finish <= other.start;
      }
      if (alone) all[std::size_t(i)] = {i, i + 1};
    }
  }
};
}  // namespace detail

/// The schedule of a plan at these extents. Communication starts as soon as its operands exist. It is complete when a step needs its
/// results, or the memory of its operands. Gathers, whose results take memory, run one ahead of the gather in use. No communication crosses
/// the control steps of a loop. Small sums and gathers (`small_sum_bytes`) stay synchronous. The same on all devices.
constexpr list<async_interval> async_schedule(const plan_view& plan, const extents& e) { return detail::async_search(plan, e).run(); }

}}  // namespace gshard::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Simulates the memory of a device: the tensors that are alive at each step of a plan, their peak and their kinds.

#include <gshard/core/cost/step_time.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/core/schedule/async_schedule.hpp>
#include <gshard/sim/record/run_record.hpp>
#include <gshard/sim/run/recompute.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gshard { inline namespace v0 {

/// The memory of a device with the largest shards while it runs the steps of a plan in some order. A tensor is alive from the step that
/// makes it to the last step that reads it before it is made again. It is also alive while messages that send or fill it are in flight.
class device_memory {
 public:
  /// `schedule`: by step of the plan, the interval in which it is in flight.
  device_memory(const plan_view& plan, const extents& e, list_view<async_interval> schedule)
      : plan_(plan), schedule_(schedule), bytes_(plan.values.size()), kinds_(plan.values.size()) {
    for (std::size_t v = 0; v < bytes_.size(); ++v) bytes_[v] = is_root(v) ? detail::shard_bytes(plan, std::int32_t(v), e) : 0;
    find_kinds(e);
  }

  /// Bytes after each step of an order, including tensors that the step reads last.
  std::vector<std::int64_t> after(const step_schedule& order) const {
    std::vector<std::int64_t> change(order.size() + 1);
    for (const life& l : lives(order)) {
      change[std::size_t(l.first)] += bytes_[l.value];
      change[std::size_t(l.last) + 1] -= bytes_[l.value];
    }
    change.pop_back();
    std::int64_t now = 0;
    for (std::size_t i = 0; i < change.size(); ++i) {
      now += change[i];
      change[i] = now + scratch(order[i].step);
    }
    return change;
  }
  /// The peak of memory in bytes.
  std::int64_t peak(const step_schedule& order) const {
    const std::vector<std::int64_t> bytes = after(order);
    return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
  }
  /// The memory by kind and tensor, at the first step that reaches the peak.
  memory_record record(const step_schedule& order, const extents& e, std::int64_t limit, std::size_t largest) const {
    const std::vector<std::int64_t> bytes = after(order);
    return record_at(order, e, bytes, std::max_element(bytes.begin(), bytes.end()), limit, largest);
  }
  /// The memory at the first step that needs more than `limit`; empty if there is none.
  memory_record overrun(const step_schedule& order, const extents& e, std::int64_t limit, std::size_t largest) const {
    const std::vector<std::int64_t> bytes = after(order);
    const auto at = std::find_if(bytes.begin(), bytes.end(), [&](std::int64_t b) { return b > limit; });
    return record_at(order, e, bytes, at, limit, largest);
  }
  memory_kind kind(std::int32_t v) const { return kinds_[root(v)]; }
  /// Bytes of the storage of a value.
  std::int64_t bytes(std::int32_t v) const { return bytes_[root(v)]; }

 private:
  struct life {
    std::size_t value;
    std::int32_t first, last;  // positions in the order
  };
  plan_view plan_;
  list_view<async_interval> schedule_;
  std::vector<std::int64_t> bytes_;  // by value, of roots
  std::vector<memory_kind> kinds_;

  memory_record record_at(const step_schedule& order, const extents& e, const std::vector<std::int64_t>& bytes,
                          std::vector<std::int64_t>::const_iterator at, std::int64_t limit, std::size_t largest) const {
    memory_record r;
    r.limit = limit;
    if (at == bytes.end()) return r;
    r.peak = *std::max_element(bytes.begin(), bytes.end());
    const auto position = std::int32_t(at - bytes.begin());
    r.step = order[std::size_t(position)].step;
    for (const life& l : lives(order)) {
      if (l.first > position || l.last < position) continue;
      r.bytes[std::size_t(kinds_[l.value])] += bytes_[l.value];
      r.padding += padding(l.value, e);
      r.largest.push_back({std::int32_t(l.value), kinds_[l.value], bytes_[l.value]});
    }
    r.bytes[std::size_t(memory_kind::scratch)] = scratch(r.step);
    const std::size_t shown = std::min(largest, r.largest.size());
    const auto larger = [](const live_tensor& a, const live_tensor& b) {
      return a.bytes != b.bytes ? a.bytes > b.bytes : a.value < b.value;
    };
    std::partial_sort(r.largest.begin(), r.largest.begin() + std::ptrdiff_t(shown), r.largest.end(), larger);
    r.largest.resize(shown);
    return r;
  }

  std::size_t root(std::int32_t v) const { return std::size_t(plan_.lifetimes[std::size_t(v)].root); }
  bool is_root(std::size_t v) const { return plan_.lifetimes[v].root == std::int32_t(v); }

  /// A combined all_reduce copies its tensors next to each other. Other moves pack portions that fit into a cache.
  std::int64_t scratch(std::int32_t step) const {
    const node& n = plan_.steps[std::size_t(step)];
    std::int64_t bytes = 0;
    for (int i = 0; n.kind == op::all_reduce && n.inputs > 1 && i < n.inputs; ++i) bytes += this->bytes(n.input(i));
    return bytes;
  }

  void find_kinds(const extents& e) {
    const auto is_sharded = [&](std::int32_t v) { return e.devices(plan_.at(v).layout.used()) > 1; };
    std::fill(kinds_.begin(), kinds_.end(), memory_kind::activation);
    std::int32_t backward = 0;
    while (backward < std::int32_t(plan_.steps.size()) && !plan_.steps[std::size_t(backward)].place.gradient) ++backward;
    // A tensor that is made after the forward pass and has the dims of a parameter counts as its gradient.
    std::vector<std::vector<const parameter*>> by_rank(max_rank + 1);
    for (const parameter& p : plan_.parameters)
      if (p.trainable) {
        auto& list = by_rank[std::size_t(plan_.at(p.value).rank())];
        if (std::none_of(list.begin(), list.end(), [&](const parameter* q) { return plan_.at(q->value).dims == plan_.at(p.value).dims; }))
          list.push_back(&p);
      }
    for (std::size_t i = std::size_t(backward); i < plan_.steps.size(); ++i)
      for (int o = 0; o < plan_.steps[i].outputs; ++o) {
        const std::int32_t v = plan_.steps[i].output(o);
        for (const parameter* p : by_rank[std::size_t(plan_.at(v).rank())])
          if (plan_.at(v).dims == plan_.at(p->value).dims) kinds_[root(v)] = memory_kind::gradient;
      }
    for (const port& p : plan_.inputs) kinds_[std::size_t(p.value)] = memory_kind::input;
    for (const parameter& p : plan_.parameters)
      kinds_[std::size_t(p.value)] = p.of_optimizer         ? memory_kind::optimizer_state
                                     : is_sharded(p.value) ? memory_kind::sharded_weight
                                                           : memory_kind::replicated_weight;
  }

  /// Bytes of the largest shard beyond an even share of the tensor.
  std::int64_t padding(std::size_t v, const extents& e) const {
    const value& t = plan_.at(std::int32_t(v));
    if (!t.windows.empty()) return 0;
    std::int64_t whole = size_of(t.type);
    for (int d = 0; d < t.rank(); ++d) whole *= e.dim(t.dims[d]);
    return bytes_[v] - whole / e.devices(t.layout.used());
  }

  std::vector<life> lives(const step_schedule& order) const {
    const auto end = std::int32_t(order.size()) - 1;
    std::vector<life> all;
    all.reserve(plan_.values.size());
    std::vector<std::int32_t> now(plan_.values.size(), -1);  // by root: its row
    std::vector<std::int32_t> at(plan_.steps.size(), 0);     // by step of the plan: its position in the order
    std::vector<std::vector<std::int32_t>> held(plan_.steps.size() + 1);  // by step of the plan: rows needed until it runs
    const auto begin = [&](std::int32_t v, std::int32_t first, std::int32_t last) {
      now[std::size_t(v)] = std::int32_t(all.size());
      all.push_back({std::size_t(v), first, last});
    };
    const auto extend = [&](std::int32_t row, std::int32_t until) {
      std::int32_t& last = all[std::size_t(row)].last;
      last = std::max(last, until);
    };
    for (const port& p : plan_.inputs) begin(p.value, 0, 0);
    for (const parameter& p : plan_.parameters) begin(p.value, 0, end);
    for (std::int32_t i = 0; i <= end; ++i) {
      const auto [step, recomputed] = order[std::size_t(i)];
      const node& n = plan_.steps[std::size_t(step)];
      const async_interval when = recomputed ? async_interval{step, step + 1} : schedule_[std::size_t(step)];
      if (!recomputed) {
        at[std::size_t(step)] = i;
        for (const std::int32_t row : held[std::size_t(step)]) extend(row, i - 1);
        held[std::size_t(step)].clear();
      }
      const auto hold = [&](std::int32_t row) {
        extend(row, i);
        if (when.finish > step + 1) held[std::size_t(when.finish)].push_back(row);
      };
      for (int k = 0; k < n.inputs; ++k)
        if (const std::int32_t row = now[root(n.input(k))]; row >= 0) hold(row);
      for (int o = 0; o < n.outputs; ++o) {
        const std::int32_t v = n.output(o);
        if (is_root(std::size_t(v))) begin(v, when.start == step ? i : at[std::size_t(when.start)], i);
        hold(now[root(v)]);
      }
    }
    for (const std::int32_t row : held.back()) extend(row, end);
    for (const port& p : plan_.outputs)
      if (const std::int32_t row = now[root(p.value)]; row >= 0) all[std::size_t(row)].last = end;
    return all;
  }
};

}}  // namespace gshard::v0

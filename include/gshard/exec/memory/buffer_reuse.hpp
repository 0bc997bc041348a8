// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Finds results that may reuse an operand's buffer, and steps that are fused and run together piece by piece.

#include <gshard/core/plan/lifetime.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/core/schedule/async_schedule.hpp>
#include <gshard/exec/backend/device_group.hpp>
#include <gshard/exec/bind/bound_plan.hpp>
#include <gshard/exec/bind/pieces.hpp>
#include <gshard/exec/bind/shards.hpp>
#include <gshard/exec/tensor/cluster.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

// Both are known only when extents are bound, and may differ between devices. The fusion on a device depends only on that device, so its
// results do not depend on the other devices of its process.
namespace gshard { inline namespace v0 { namespace detail {

/// Plans buffer reuse and fusion for a bound plan on this process.
class buffer_reuse {
 public:
  /// `schedule`: by step. `lent`: values in memory of the caller. Other values do not use their storage.
  buffer_reuse(const bound_plan& all, list_view<async_interval> schedule, std::span<const std::int32_t> lent = {})
      : plan_(all.plan), all_(all), schedule_(schedule), life_(plan_.lifetimes.begin(), plan_.lifetimes.end()),
        busy_(plan_.values.size(), 0) {
    for (const std::int32_t v : lent) life_[std::size_t(v)].persistent = true;
    find_groups();
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      share(i);
      if (is_early(i)) hold(i);
    }
    for (std::size_t v = 0; v < life_.size(); ++v) life_[v].last = std::max(life_[v].last, busy_[v] - 1);
    for (lifetime& l : life_) l.root = root(l.root);
    // The steps of a fused group run at the same time.
    for (lifetime& l : life_) {
      if (l.first >= 0) l.first = std::int32_t(first_head(std::size_t(l.first)));
      if (l.last >= 0 && std::size_t(l.last) < plan_.steps.size()) l.last = std::int32_t(last_end(std::size_t(l.last))) - 1;
    }
  }

  /// Lifetimes by value. Storage is needed between the steps of a root's lifetime.
  std::span<const lifetime> lifetimes() const { return life_; }
  /// The step after the fused group that starts with step i on a device; i + 1 if step i runs alone.
  std::size_t group_end(std::size_t i, std::size_t device) const { return of_device(device).end[i]; }
  /// The number of pieces for the fused group that starts with step i. 0: all its steps are elementwise, and may be split anywhere.
  std::int64_t pieces(std::size_t i, std::size_t device) const { return batch_of(plan_.steps[i], all_.values, device).extent; }
  /// True if other steps run while this one is in flight.
  bool is_early(std::size_t i) const { return schedule_[i] != async_interval{std::int32_t(i), std::int32_t(i) + 1}; }
  /// True if a reshard moves no data: every device's new shard is its old one.
  bool stays(const node& n) const {
    if (!traits(n.kind).reshards) return false;
    const std::uint32_t axes = all_.axes.mask(n.attr.axes);
    if (traits(n.kind).collective && device_group(all_.on.backend().extents(), axes, 0).size() > 1) return false;
    for (int o = 0; o < n.outputs; ++o) {
      const bound_value &before = value(n.input(o)), &after = value(n.output(o));
      for (std::size_t d = 0; d < before.places.size(); ++d)
        if (before.places[d].offset != after.places[d].offset || before.places[d].extent != after.places[d].extent) return false;
    }
    return true;
  }

 private:
  plan_view plan_;
  const bound_plan& all_;
  list_view<async_interval> schedule_;
  std::vector<lifetime> life_;
  std::vector<std::int32_t> busy_;           // by root: the step before which the last asynchronous collective on it is complete
  struct groups {
    std::vector<std::size_t> head, end;  // head: the first step of each step's group; end: the step after a group, by its first step

    bool operator==(const groups&) const = default;
  };
  std::vector<groups> kinds_;             // the different groupings
  std::vector<std::size_t> kind_of_;  // by device

  const groups& of_device(std::size_t d) const { return kinds_[kind_of_[d]]; }
  /// The first step of the groups that contain step i on any device; `last_end`: the step after the last.
  std::size_t first_head(std::size_t i) const {
    std::size_t first = i;
    for (const groups& g : kinds_) first = std::min(first, g.head[i]);
    return first;
  }
  std::size_t last_end(std::size_t i) const {
    std::size_t last = i + 1;
    for (const groups& g : kinds_) last = std::max(last, g.end[g.head[i]]);
    return last;
  }

  const bound_value& value(std::int32_t v) const { return all_.value(v); }
  std::int32_t root(std::int32_t v) const {
    while (v >= 0 && life_[std::size_t(v)].root != v) v = life_[std::size_t(v)].root;
    return v;
  }
  bool equal_sizes(std::int32_t a, std::int32_t b) const {
    for (std::size_t d = 0; d < value(a).places.size(); ++d)
      if (value(a).bytes(d) != value(b).bytes(d)) return false;
    return true;
  }
  bool reads(const node& n, std::int32_t v) const {
    for (int k = 0; k < n.inputs; ++k)
      if (n.input(k) == v) return true;
    return false;
  }

  /// Fuses einsums that have the same batch extent, and elementwise steps. Each step uses a result of its group, or an operand of the
  /// group's einsums.
  void find_groups() {
    const std::size_t n = plan_.steps.size();
    // Groups may differ between processes, but all start and finish collectives in the same order, so no group crosses such a point.
    std::vector<char> begins(n + 1);
    for (std::size_t i = 0; i < n; ++i)
      if (is_early(i)) begins[std::size_t(schedule_[i].start)] = begins[std::size_t(schedule_[i].finish)] = 1;
    // The processes agree before the first step that writes into a parameter.
    begins[first_write(plan_)] = 1;
    for (std::size_t d = 0; d < all_.on.devices().size(); ++d) {
      groups g = groups_of(d, begins);
      const auto known = std::find(kinds_.begin(), kinds_.end(), g);
      kind_of_.push_back(std::size_t(known - kinds_.begin()));
      if (known == kinds_.end()) kinds_.push_back(std::move(g));
    }
  }
  groups groups_of(std::size_t device, const std::vector<char>& begins) const {
    const std::size_t n = plan_.steps.size();
    groups g;
    g.end.resize(n);
    for (std::size_t i = 0; i < n;) {
      const std::size_t head = i;
      g.head.push_back(head);
      if (has_batch(plan_.steps[head], device) || is_elementwise(plan_.steps[head]))
        while (i + 1 < n && !begins[i + 1] && continues(head, i + 1, device)) {
          g.head.push_back(head);
          ++i;
        }
      g.end[head] = ++i;
    }
    return g;
  }
  bool has_batch(const node& n, std::size_t device) const { return batch_of(n, all_.values, device).factor >= 0; }
  bool continues(std::size_t head, std::size_t i, std::size_t device) const {
    const node &n = plan_.steps[i], &first = plan_.steps[head];
    if (!traits(n.kind).alias && !is_elementwise(n) && !has_batch(n, device)) return false;
    const bool batched = has_batch(n, device);  // an einsum
    bool uses = false;
    for (std::size_t j = head; j < i; ++j) {
      const node& before = plan_.steps[j];
      uses = uses || reads(n, before.output());
      for (int k = 0; batched && has_batch(before, device) && k < n.inputs; ++k) uses = uses || reads(before, n.input(k));
    }
    if (!uses) return false;
    if (!has_batch(first, device)) return !batched && value(n.output()).bytes(device) == value(first.output()).bytes(device);
    if (writes_parameters(plan_, n)) return false;  // the einsums may read the old values of other pieces
    const std::int64_t pieces = batch_of(first, all_.values, device).extent;
    if (!batched) return value(n.output()).elements(device) % pieces == 0;
    const batch_dim batch = batch_of(n, all_.values, device);
    if (batch.extent != pieces) return false;
    for (int k = 0; k < n.inputs; ++k)
      for (std::size_t j = head; j < i; ++j)
        if (n.input(k) == plan_.steps[j].output() &&
            leading_dim(value(n.input(k)), n.rule.in[std::size_t(k)], device).factor != batch.factor)
          return false;
    return true;
  }

  void share(std::size_t i) {
    const node& n = plan_.steps[i];
    if (n.outputs == 0 || n.in_place > 0 || traits(n.kind).alias) return;
    if (n.kind == op::all_reduce || stays(n)) {
      for (int o = 0; o < n.outputs; ++o) write_over(i, n.input(o), n.output(o));
      return;
    }
    for (int k = 0; k < n.inputs; ++k)
      if (may_write_over(n, k) && !is_read_otherwise(i, k) && write_over(i, n.input(k), n.output())) return;
  }
  /// True if the buffer of this operand is read in another order. The reader is another operand of the step, or an einsum of its fused
  /// group, which reads its own blocks.
  bool is_read_otherwise(std::size_t i, int operand) const {
    const node& n = plan_.steps[i];
    const std::int32_t r = root(n.input(operand));
    const auto reads_root = [&](const node& other) {
      for (int k = 0; k < other.inputs; ++k)
        if (root(other.input(k)) == r) return true;
      return false;
    };
    for (int k = 0; k < n.inputs; ++k)
      if (k != operand && root(n.input(k)) == r && !(traits(n.kind).elementwise && may_write_over(n, k))) return true;
    for (const groups& g : kinds_) {
      const std::size_t head = g.head[i];
      if (life_[std::size_t(r)].first >= std::int32_t(head)) continue;  // computed by the group, piece by piece
      for (std::size_t j = head; j < i; ++j)
        if (traits(plan_.steps[j].kind).product && reads_root(plan_.steps[j])) return true;
    }
    return false;
  }
  bool write_over(std::size_t i, std::int32_t from, std::int32_t to) {
    lifetime& l = life_[std::size_t(root(from))];
    lifetime& result = life_[std::size_t(to)];
    if (l.persistent || result.persistent || l.last != std::int32_t(i) || result.root != to || !equal_sizes(from, to)) return false;
    if (busy_[std::size_t(root(from))] > (is_early(i) ? schedule_[i].start : std::int32_t(first_head(i)))) return false;
    result.root = root(from);
    l.last = result.last;
    return true;
  }
  /// Keeps the buffers of operands and results reserved while an asynchronous collective is in flight.
  void hold(std::size_t i) {
    const node& n = plan_.steps[i];
    const auto [start, finish] = schedule_[i];
    const auto hold_until_finish = [this, end = finish](std::int32_t v) { busy_[std::size_t(v)] = std::max(busy_[std::size_t(v)], end); };
    for (int k = 0; k < n.inputs; ++k) hold_until_finish(root(n.input(k)));
    for (int o = 0; o < n.outputs; ++o) {
      lifetime& result = life_[std::size_t(root(n.output(o)))];
      result.first = std::min(result.first, start);
      hold_until_finish(root(n.output(o)));
    }
  }
};

}}}  // namespace gshard::v0::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Estimates the time and memory of a plan: flops, bytes touched, collectives and peak bytes on the busiest device.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/core/base/counting.hpp>
#include <gshard/core/base/list.hpp>
#include <gshard/core/base/math.hpp>
#include <gshard/core/cost/measured_times.hpp>
#include <gshard/core/cost/network.hpp>
#include <gshard/core/cost/node_traffic.hpp>
#include <gshard/core/cost/product_extents.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/core/reshard/cost.hpp>
#include <gshard/core/reshard/halo.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace gshard { inline namespace v0 {

/// The machine for which plans are compared. The default is a node of a cluster with a 50 Gbit/s network, which sends about
/// `default_start_bytes` in the time of a collective's start. Only the ratios matter for a choice.
struct machine {
  double flops = 1e12;         ///< additions and multiplications per second
  double memory_bytes = 1e11;  ///< bytes per second that a device reads and writes in memory
  double link_bytes = 6.5e9;   ///< bytes per second that a node receives from other nodes
  double start = 1e-5;         ///< seconds that the start of a collective takes
  int node_devices = 1;        ///< successive devices of the mesh that share a node and its link
  double node_bytes = 1e10;    ///< bytes per second that a device receives from devices of its node
  double node_start = 1e-6;    ///< seconds that the start of a collective within a node takes
  measured_times measured{};   ///< measured times, used instead of the rates

  constexpr bool operator==(const machine&) const = default;

  /// Bytes that a node receives from other nodes in a collective of all groups along these axes. Along `replicas` (other axes), groups move
  /// the same data.
  constexpr double bytes_between_nodes(op_ref kind, std::uint32_t axes, const extents& e, std::int64_t bytes_received,
                                       std::uint32_t replicas = 0) const {
    const nodes_of_group g = group_on_nodes(axes, e, node_devices);
    const bool at_once = detail::is_all_reduce(kind) && bytes_received <= small_sum_bytes * (g.members - 1) / g.members;
    return double(gshard::bytes_between_nodes(kind, g, bytes_received, at_once)) * node_devices /
           double(g.members * detail::members_on_node(replicas, e, node_devices));
  }
  /// The time of a collective whose busiest device receives `bytes_received`: its start, and the longer of two transfers. A node receives
  /// bytes from other nodes, and a device receives bytes within its node. Both run at the same time, in rounds.
  constexpr double seconds(op_ref kind, std::uint32_t axes, const extents& e, std::int64_t bytes_received,
                           std::uint32_t replicas = 0) const {
    if (bytes_received <= 0) return 0;
    const nodes_of_group g = group_on_nodes(axes, e, node_devices);
    const std::int64_t sharers = g.nodes > 1 ? detail::members_on_node(replicas, e, node_devices) : 1;  // groups that move the same data
    const group_reach reach = reach_of(g.members * sharers, g.nodes);
    if (const measured_curve& curve = measured.collective(kind, reach); curve.known())
      return curve.extended(reach == group_reach::within_node ? double(bytes_received)
                                                              : bytes_between_nodes(kind, axes, e, bytes_received, replicas));
    if (node_devices <= 1) return start + double(bytes_received) / link_bytes;
    double between = 0, within = 0, begin = 0;
    if (g.nodes > 1) {
      begin += start;
      between = bytes_between_nodes(kind, axes, e, bytes_received, replicas) / link_bytes;
    }
    if (g.nodes < g.members * sharers) {
      begin += node_start;
      const std::int64_t mates = g.members / g.nodes - 1;
      const double from_mates = is_looped_product(kind)     ? 1
                                : traits(kind).in_rings ? double(mates * g.members) / double((mates + 1) * (g.members - 1))
                                                        : double(mates) / double(g.members - 1);
      // Sharers take equal parts of the bytes of other nodes, and exchange the parts within their node.
      const double from_other_nodes = (1 - from_mates) / double(sharers);
      within = (1 - from_other_nodes) * double(bytes_received) / node_bytes;
    }
    return begin + (between > within ? between : within);
  }
};
static_assert(network_of_nodes<machine>);

/// The bytes that a device receives from other nodes while one collective starts: start time / seconds per byte. Both come from a measured
/// all_gather, otherwise from the machine's rates. Seconds per byte also come from the rates if the curve does not rise. The result is from
/// 1 to 2^40. @see runs_on
constexpr std::int64_t start_bytes_of(const machine& on) {
  double start = on.start, each = on.node_devices / on.link_bytes;
  const auto reach = on.node_devices > 1 ? group_reach::both : group_reach::between_nodes;
  if (const measured_curve& curve = on.measured.collective(op::all_gather, reach); curve.count > 1) {
    const auto last = std::size_t(curve.count - 1);
    start = curve.value[0];
    const double slope = (curve.value[last] - curve.value[0]) / (curve.at[last] - curve.at[0]);
    if (slope > 0) each = slope * on.node_devices;  // the curve counts bytes of a node
  }
  const double bytes = each > 0 ? start / each : each == 0 && start > 0 ? std::numeric_limits<double>::max() : 0;
  return !(bytes >= 1) ? 1 : bytes > double(std::int64_t(1) << 40) ? std::int64_t(1) << 40 : std::int64_t(bytes);
}

/// The time of one run of a plan on the busiest device, in seconds, and its memory, in bytes. Infinite and `uncountable` if extents are
/// missing or cannot be counted.
struct step_price {
  double compute = 0;
  double communicate = 0;
  std::int64_t parameters = 0;  ///< including optimizer state
  std::int64_t inputs = 0;
  std::int64_t peak = 0;  ///< the most bytes of all other tensors that are alive at once

  constexpr double seconds() const { return compute + communicate; }
  constexpr std::int64_t bytes() const { return detail::saturating_sum(detail::saturating_sum(parameters, inputs), peak); }
};

namespace detail {

/// The largest shard of a value in bytes, or `uncountable`.
constexpr std::int64_t shard_bytes(const plan_view& plan, std::int32_t v, const extents& e) {
  const value& t = plan.at(v);
  return is_countable(t, e) ? shard_elements(t, plan.windows, e) * size_of(t.type) : uncountable;
}

/// The iterations of the innermost loop of a step: the product of the extents of its factors, in the shards of its operands and results. A
/// dim that is read through a window takes its extent from another tensor. Infinite if these extents cannot be counted.
constexpr double loop_count(const plan_view& plan, const node& step, const extents& e) {
  if (!plan.is_countable(step, e)) return __builtin_inf();
  double n = 1;
  std::uint32_t seen = traits(step.kind).grouped ? 1u << step.rule.in[2].back() : 0;  // a row has one expert
  const auto loop = [&](std::int32_t v, const short_list& factors) {
    const value& t = plan.at(v);
    for (int d = 0; d < factors.size(); ++d) {
      if ((seen >> factors[d]) & 1u) continue;
      seen |= 1u << factors[d];
      n *= double(shard_extent(t.dims[d], t.layout[d], e));
    }
  };
  const std::int32_t last = is_looped_product(step.kind) ? ring_operand(step) : -1;  // the other tensors are sharded like the work
  for (const bool now : {false, true}) {
    for (int o = 0; o < step.outputs; ++o)
      if ((step.output(o) == last) == now) loop(step.output(o), step.rule.out[o]);
    for (int i = step.inputs; i-- > 0;)
      if ((step.input(i) == last) == now) loop(step.input(i), step.rule.in[i]);
  }
  return n;
}

}  // namespace detail

/// Additions and multiplications of an einsum, convolution, attention, or custom operation with `flops`. For complex numbers, 4 times as
/// many. 0 for other operations. Infinite if the extents cannot be counted.
constexpr double flops(const plan_view& plan, const node& step, const extents& e) {
  if (step.kind->custom) return step.attr.custom->flops > 0 ? step.attr.custom->flops * detail::loop_count(plan, step, e) : 0;
  const bool products = traits(step.kind).product && (step.inputs == 2 || traits(step.kind).grouped);
  if (const int fused = traits(step.kind).fused_products; fused > 0) return 2.0 * fused * detail::loop_count(plan, step, e);
  const double each = is_complex(plan.at(step.input(0)).type) ? 8 : 2;
  return products ? each * detail::loop_count(plan, step, e) : 0;
}

/// Bytes that a step reads and writes on a device: each distinct operand once, and its results. Lookups and slices read only as many bytes
/// as they write. A row that is written into a state of a loop is read and written. `uncountable` if the extents cannot be counted.
constexpr std::int64_t bytes_touched(const plan_view& plan, const node& step, const extents& e) {
  if (traits(step.kind).alias) return 0;
  if (!plan.is_countable(step, e)) return uncountable;
  if (writes_row(step)) return 2 * detail::shard_bytes(plan, step.input(1), e);
  std::int64_t out = 0;
  for (int o = 0; o < step.outputs; ++o) out += detail::shard_bytes(plan, step.output(o), e);
  if (traits(step.kind).reads_what_it_writes) return 2 * out;
  std::int64_t in = 0;
  for (int i = 0; i < step.inputs; ++i) {
    bool again = false;
    for (int k = 0; k < i; ++k) again = again || step.input(k) == step.input(i);
    if (!again) in += detail::shard_bytes(plan, step.input(i), e);
  }
  return in + out;
}

namespace detail {

/// Seconds of the arithmetic of a step.
constexpr double seconds_of_arithmetic(const plan_view& plan, const node& step, const extents& e, const machine& on) {
  const double work = flops(plan, step, e);
  if (work <= 0 || !is_finite(work) || !on.measured.has_operations()) return work / on.flops;
  const product_extents p = extents_of_product(plan, step, e);
  return work * on.measured.products(p.batch > 1).clamped(double(p.smallest()));
}

/// Seconds of the memory traffic of a step.
constexpr double seconds_of_memory(op_ref kind, std::int64_t bytes, const machine& on) {
  if (bytes <= 0) return 0;
  if (bytes == uncountable) return __builtin_inf();
  const operation_time& measured = on.measured.operation(kind);
  return measured.known() ? measured.seconds(bytes) : double(bytes) / on.memory_bytes;
}

/// The peak bytes of the values that steps make, or `uncountable`.
constexpr std::int64_t peak_bytes(const plan_view& plan, const extents& e) {
  list<std::int64_t> change(plan.steps.size() + 2, 0);
  std::int64_t all = 0;
  for (std::size_t v = 0; v < plan.values.size(); ++v) {
    const lifetime& l = plan.lifetimes[v];
    if (l.root != std::int32_t(v) || l.first < 0) continue;
    const std::int64_t bytes = shard_bytes(plan, std::int32_t(v), e);
    all = saturating_sum(all, bytes);
    if (all == uncountable) return uncountable;
    change[std::size_t(l.first)] += bytes;
    change[std::size_t(l.last) + 1] -= bytes;
  }
  std::int64_t now = 0, most = 0;
  for (const std::int64_t c : change) {
    now += c;
    if (now > most) most = now;
  }
  return most;
}

}  // namespace detail

/// Seconds of one step on the busiest device. Local: the longer of its arithmetic and its memory traffic. Collective: the time of the
/// network, plus arithmetic if it has some. @see network
template <network Network>
constexpr double seconds_of(const plan_view& plan, const node& step, const extents& e, const machine& on, const Network& through) {
  const double arithmetic = detail::seconds_of_arithmetic(plan, step, e, on);
  if (traits(step.kind).collective) {
    const std::int64_t received = plan.bytes_received(step, e);
    if (received == uncountable) return __builtin_inf();
    return arithmetic + detail::seconds_on(through, step.kind, step.attr.axes, e, received, detail::replica_axes(plan, step, e));
  }
  const double memory = detail::seconds_of_memory(step.kind, bytes_touched(plan, step, e), on);
  return arithmetic > memory ? arithmetic : memory;
}
/// The same on a cluster.
constexpr double seconds_of(const plan_view& plan, const node& step, const extents& e, const machine& on) {
  return seconds_of(plan, step, e, on, on);
}

/// Additions and multiplications of a plan's einsums and convolutions on the busiest device.
constexpr double flops(const plan_view& plan, const extents& e) {
  double total = 0;
  for (const node& step : plan.steps) total += flops(plan, step, e);
  return total;
}
/// Bytes that the steps of a plan read and write in the memory of the busiest device.
constexpr std::int64_t bytes_touched(const plan_view& plan, const extents& e) {
  std::int64_t total = 0;
  for (const node& step : plan.steps) total = detail::saturating_sum(total, bytes_touched(plan, step, e));
  return total;
}

/// The price of a plan at these extents. Inputs arrive at the speed of the links, so replicated inputs are not free; on a measured machine
/// they cost nothing, as in executors. Steps run one after the other, without overlap.
template <network Network>
constexpr step_price price(const plan_view& plan, const extents& e, const machine& on, const Network& through) {
  step_price p;
  for (const node& step : plan.steps) (traits(step.kind).collective ? p.communicate : p.compute) += seconds_of(plan, step, e, on, through);
  for (const parameter& q : plan.parameters) p.parameters = detail::saturating_sum(p.parameters, detail::shard_bytes(plan, q.value, e));
  for (const port& q : plan.inputs) p.inputs = detail::saturating_sum(p.inputs, detail::shard_bytes(plan, q.value, e));
  if (on.measured.has_operations()) p.compute += on.measured.run_start;
  else p.communicate += double(p.inputs) / on.link_bytes;
  p.peak = detail::peak_bytes(plan, e);
  return p;
}
/// The same on a cluster.
constexpr step_price price(const plan_view& plan, const extents& e, const machine& on) { return price(plan, e, on, on); }

}}  // namespace gshard::v0

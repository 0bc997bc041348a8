// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Bytes that collectives send between the nodes of a cluster.

#include <gshard/base/list_view.hpp>
#include <gshard/ir/op.hpp>
#include <gshard/pass/cost/cost.hpp>
#include <gshard/pass/plan.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 {

/// How the members of a group of devices are spread over nodes.
struct nodes_of_group {
  std::int64_t members = 1;
  std::int64_t nodes = 1;
  std::int64_t pairs = 0;      ///< Ordered pairs of members on different nodes.
  std::int64_t crossings = 0;  ///< Members whose successor, in a ring of all members, is on another node.

  constexpr bool operator==(const nodes_of_group&) const = default;
};

namespace detail {
/// The coordinates of a device along the axes of a mask, and 0 along all others, as a device id.
constexpr int first_of_group(int device, std::uint32_t axes, const extents& e) {
  int first = device, stride = 1;
  for (int a = max_axes; a-- > 0;) {
    if (e.axis(a) == 0) continue;
    if ((axes >> a) & 1u) first -= device / stride % e.axis(a) * stride;
    stride *= e.axis(a);
  }
  return first;
}
/// Member m of the group of a device: a device id.
constexpr int member_of_group(int first, std::int64_t m, std::uint32_t axes, const extents& e) {
  int device = first, stride = 1;
  for (int a = max_axes; a-- > 0;) {
    if (e.axis(a) == 0) continue;
    if ((axes >> a) & 1u) {
      device += int(m % e.axis(a)) * stride;
      m /= e.axis(a);
    }
    stride *= e.axis(a);
  }
  return device;
}
}  // namespace detail

/// The groups along these axes if a node holds `node_devices` successive devices. An axis is within a node, or across nodes; one whose
/// extent neither divides what is left of a node nor is a multiple of it counts as its whole part within.
constexpr nodes_of_group group_on_nodes(std::uint32_t axes, const extents& e, int node_devices) {
  std::int64_t left = node_devices, here = 1;
  for (int a = max_axes; a-- > 0;) {
    const std::int64_t extent = e.axis(a);
    if (extent == 0) continue;
    if ((axes >> a) & 1u) here *= extent < left ? extent : left;
    left = extent < left ? left / extent : 1;
  }
  nodes_of_group g{.members = e.devices(axes)};
  g.nodes = (g.members + here - 1) / here;
  g.pairs = g.members * (g.members - here);
  g.crossings = g.nodes > 1 ? g.nodes : 0;
  return g;
}
/// The group of a device, if device d is on node[d].
constexpr nodes_of_group group_on_nodes(std::uint32_t axes, const extents& e, list_view<int> node, int device) {
  nodes_of_group g{.members = e.devices(axes), .nodes = 0};
  const int first = detail::first_of_group(device, axes, e);
  const auto node_of = [&](std::int64_t m) { return node[std::size_t(detail::member_of_group(first, m, axes, e))]; };
  for (std::int64_t m = 0; m < g.members; ++m) {
    bool is_new = true;
    for (std::int64_t k = 0; k < g.members; ++k) {
      const bool same = node_of(k) == node_of(m);
      is_new = is_new && !(same && k < m);
      g.pairs += !same;
    }
    g.nodes += is_new;
    g.crossings += node_of(m) != node_of((m + 1) % g.members);
  }
  return g;
}

/// Bytes that all members of a group together receive from devices on other nodes, if each member receives `bytes_received`. Gathers and
/// reductions are in two levels: a node sends one partial sum, and gets each block once. `at_once`: every member sends the same to all
/// others, as in small sums. Permutes are taken to be random, other moves to be even.
constexpr std::int64_t bytes_between_nodes(op kind, const nodes_of_group& g, std::int64_t bytes_received, bool at_once = false) {
  if (g.nodes <= 1 || bytes_received <= 0) return 0;
  if (is_looped_product(kind)) return g.crossings * bytes_received;
  const std::int64_t others = g.members - 1, times = traits(kind).in_rings && !at_once ? (g.nodes - 1) * g.members : g.pairs;
  return bytes_received / others * times + bytes_received % others * times / others;
}

/// Bytes that all devices together receive from other nodes in a step of a plan, if device d is on node[d]. Exact for gathers and
/// reductions of even shards in which every node has one partial sum, and for even all_to_alls. @see summation
constexpr std::int64_t bytes_between_nodes(const plan_view& plan, const node& step, const extents& e, list_view<int> node) {
  const std::int64_t bytes = plan.bytes_received(step, e);
  if (bytes == 0) return 0;
  const std::uint32_t axes = step.attr.axes;
  bool at_once = false;
  if (step.kind == op::all_reduce) {
    std::int64_t addends = 0;
    for (int i = 0; i < step.inputs; ++i) {
      const value& v = plan.at(step.input(i));
      addends += shard_elements(v.dims, v.layout, e) * size_of(v.type);
    }
    at_once = addends * e.devices(axes) <= small_sum_bytes;
  }
  std::int64_t total = 0;
  for (std::size_t device = 0; device < node.size(); ++device)
    if (detail::first_of_group(int(device), axes, e) == int(device))
      total += bytes_between_nodes(step.kind, group_on_nodes(axes, e, node, int(device)), bytes, at_once);
  return total;
}
/// In all steps of a plan.
constexpr std::int64_t bytes_between_nodes(const plan_view& plan, const extents& e, list_view<int> node) {
  std::int64_t total = 0;
  for (const gshard::node& step : plan.steps) total += bytes_between_nodes(plan, step, e, node);
  return total;
}

}}  // namespace gshard::v0

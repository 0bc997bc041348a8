// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Bytes that collectives send between the nodes of a cluster.

#include <gshard/core/base/counting.hpp>
#include <gshard/core/base/list.hpp>
#include <gshard/core/base/list_view.hpp>
#include <gshard/core/ir/device_order.hpp>
#include <gshard/core/ir/op.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/core/reshard/cost.hpp>
#include <gshard/core/reshard/halo.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 {

/// The distribution of the members of a device group over nodes.
struct nodes_of_group {
  std::int64_t members = 1;
  std::int64_t nodes = 1;
  std::int64_t pairs = 0;      ///< Ordered pairs of members on different nodes.
  std::int64_t crossings = 0;  ///< Members whose successor, in a ring of all members, is on another node.

  constexpr bool operator==(const nodes_of_group&) const = default;
};

namespace detail {
constexpr bool is_all_reduce(op_ref kind) { return traits(kind).sums && traits(kind).one_call; }

/// The first member of a device's group along the axes of a mask: a device id.
constexpr int first_of_group(int device, std::uint32_t axes, const extents& e) {
  int first = device, stride = 1;
  for (int a = max_axes; a-- > 0;) {
    if (e.axis(a) == 0) continue;
    if ((axes >> a) & 1u) first -= device / stride % e.axis(a) * stride;
    stride *= e.axis(a);
  }
  return first;
}
/// Member m of the group whose first member is given: a device id.
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

/// The members of a group along these axes that share a node, if a node holds `node_devices` successive devices. Axes fill the node from
/// the innermost on, in whole parts. The number is approximate if an extent neither divides the rest of the node nor is a multiple of it.
constexpr std::int64_t members_on_node(std::uint32_t axes, const extents& e, int node_devices) {
  std::int64_t left = node_devices, here = 1;
  for (int a = max_axes; a-- > 0;) {
    const std::int64_t extent = e.axis(a);
    if (extent == 0) continue;
    if ((axes >> a) & 1u) here *= extent < left ? extent : left;
    left = extent < left ? left / extent : 1;
  }
  return here;
}
}  // namespace detail

/// The distribution of each group along these axes, with `node_devices` successive devices on a node. @see members_on_node
constexpr nodes_of_group group_on_nodes(std::uint32_t axes, const extents& e, int node_devices) {
  const std::int64_t here = detail::members_on_node(axes, e, node_devices);
  nodes_of_group g{.members = e.devices(axes)};
  g.nodes = (g.members + here - 1) / here;
  g.pairs = g.members * (g.members - here);
  g.crossings = g.nodes > 1 ? g.nodes : 0;
  return g;
}
/// The distribution of a device's group, if device d is on node[d].
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

/// The total bytes that members of a group receive from devices on other nodes, if each member receives `bytes_received`. Gathers and
/// reductions have two levels: a node sends one partial sum, and gets each block once. `at_once`: every member sends the same data to all
/// others, as in small sums. Permutes are assumed to be random, other moves to be even.
constexpr std::int64_t bytes_between_nodes(op_ref kind, const nodes_of_group& g, std::int64_t bytes_received, bool at_once = false) {
  if (g.nodes <= 1 || bytes_received <= 0) return 0;
  if (is_looped_product(kind)) return detail::saturating_product(g.crossings, bytes_received);
  const std::int64_t others = g.members - 1, times = traits(kind).in_rings && !at_once ? (g.nodes - 1) * g.members : g.pairs;
  return detail::saturating_sum(detail::saturating_product(bytes_received / others, times),
                            detail::saturating_product(bytes_received % others, times) / others);
}

namespace detail {

/// The coordinates of a device on the mesh, or of its position in a device order.
constexpr mesh_place place_of(const plan_view& plan, const sharding& layout, int device, const extents& e) {
  mesh_place at{};
  if (const list_view<int> order = plan.orders; layout.order != 0)
    device = device_orders{order, int(e.devices(e.known_axes))}.position(layout.order, device);
  for (int a = max_axes; a-- > 0;) {
    if (e.axis(a) == 0) continue;
    at[std::size_t(a)] = device % e.axis(a);
    device /= e.axis(a);
  }
  return at;
}

/// The mesh axes along which groups of a step hold replicas, of any tensor that it moves, or of all tensors that it sums.
class replicas_of_step {
 public:
  constexpr explicit replicas_of_step(bool sums) : sums_(sums), replicated_(sums ? ~0u : 0u) {}
  /// Adds a tensor of the step.
  constexpr void add(const sharding& before, const sharding& after) {
    const std::uint32_t here = ~(before.used() | after.used());
    replicated_ = sums_ ? replicated_ & here : replicated_ | here;
    partial_ |= before.partial | after.partial;
  }
  /// The axes along which several groups hold the same data. `within`: the axes of the step's groups. `many`: the axes with more than one
  /// device.
  constexpr std::uint32_t between_groups(std::uint32_t within, std::uint32_t many) const {
    return replicated_ & ~partial_ & ~within & many;
  }

 private:
  bool sums_;
  std::uint32_t replicated_, partial_ = 0;
};

/// The axes along which a node receives the bytes of several groups once. 0 for sums of few bytes, and for ragged exchanges.
/// @see replicas_of_step
constexpr std::uint32_t replica_axes(const plan_view& plan, const node& step, const extents& e) {
  if (!traits(step.kind).reshards || traits(step.kind).ragged) return 0;
  replicas_of_step replicas(traits(step.kind).sums);
  std::int64_t bytes = 0;
  for (int t = 0; t < step.inputs; ++t) {
    const value& v = plan.at(step.input(t));
    replicas.add(v.layout, plan.at(step.output(t)).layout);
    if (is_all_reduce(step.kind)) bytes = detail::saturating_sum(bytes, shard_elements(v, plan.windows, e) * size_of(v.type));
  }
  if (is_all_reduce(step.kind) && detail::saturating_product(bytes, e.devices(step.attr.axes)) <= small_sum_bytes) return 0;
  std::uint32_t many = 0;
  for (int a = 0; a < max_axes; ++a)
    if (e.axis(a) > 1) many |= 1u << a;
  return replicas.between_groups(step.attr.axes, many);
}

/// A block of a tensor: an interval of indices of every dim.
struct block_of_tensor {
  std::array<interval, max_rank> at{};
  constexpr bool operator==(const block_of_tensor&) const = default;
};
/// The number of elements in the union of blocks, over the dims from d on.
constexpr std::int64_t elements_in_any(const list<block_of_tensor>& blocks, int rank, int d = 0) {
  if (d == rank) return 1;
  const auto dim = std::size_t(d);
  if (blocks.size() == 1) return blocks[0].at[dim].size() * elements_in_any(blocks, rank, d + 1);
  std::int64_t n = 0, begin = blocks[0].at[dim].begin;
  for (const block_of_tensor& b : blocks) begin = b.at[dim].begin < begin ? b.at[dim].begin : begin;
  for (;;) {  // from one end of a block to the next one
    std::int64_t next = begin;
    list<block_of_tensor> here;
    for (const block_of_tensor& b : blocks) {
      const interval i = b.at[dim];
      if (i.begin <= begin && begin < i.end) here.push_back(b);
      for (const std::int64_t end : {i.begin, i.end})
        if (end > begin && (next == begin || end < next)) next = end;
    }
    if (next == begin) return n;
    if (!here.empty()) n += (next - begin) * elements_in_any(here, rank, d + 1);
    begin = next;
  }
}

/// A group of devices and the shards of a step's tensors on them, before and after it.
struct group_traffic {
  const plan_view& plan;
  const node& step;
  const extents& e;
  list_view<int> nodes;
  std::uint32_t axes;
  int first;
  std::int64_t size = e.devices(axes);

  constexpr int device(std::int64_t m) const { return member_of_group(first, m, axes, e); }
  constexpr int node_of(std::int64_t m) const { return nodes[std::size_t(device(m))]; }
  constexpr const value& before(int t) const { return plan.at(step.input(t)); }
  constexpr const value& after(int t) const { return plan.at(step.output(t)); }
  constexpr mesh_place place(const value& v, std::int64_t m) const { return place_of(plan, v.layout, device(m), e); }

  constexpr std::int64_t bytes(const value& v, std::int64_t m) const {
    std::int64_t n = size_of(v.type);
    const mesh_place at = place(v, m);
    for (int d = 0; d < v.rank(); ++d) n *= held(v, d, plan.windows, e, at).size();
    return n;
  }
  /// Bytes of tensor t that member `to` needs and member `from` has.
  constexpr std::int64_t common(int t, std::int64_t from, std::int64_t to) const {
    const value &v = before(t), &w = after(t);
    const mesh_place has = place(v, from), wants = place(w, to);
    std::int64_t n = size_of(v.type);
    for (int d = 0; d < w.rank(); ++d)
      n *= overlap(held(v, d, plan.windows, e, has), held(w, d, plan.windows, e, wants), e.dim(w.dims[d]));
    return n;
  }
  constexpr bool have_equal_shards(const value& v, std::int64_t m, std::int64_t k) const {
    const mesh_place one = place(v, m), other = place(v, k);
    for (int d = 0; d < v.rank(); ++d)
      if (!(held(v, d, plan.windows, e, one) == held(v, d, plan.windows, e, other))) return false;
    return true;
  }
  /// True if all members receive the whole old shards of all others.
  constexpr bool gathers_whole_shards() const {
    for (int t = 0; t < step.inputs; ++t)
      for (std::int64_t m = 0; m < size; ++m)
        for (std::int64_t k = 0; k < size; ++k)
          if (k != m && bytes(before(t), m) > 0 && (common(t, m, k) != bytes(before(t), m) || have_equal_shards(before(t), m, k)))
            return false;
    return true;
  }
  /// Adds the blocks of tensor t that member `to` needs and member `from` has. A window that wraps may need two.
  constexpr void add_common(int t, std::int64_t from, std::int64_t to, list<block_of_tensor>& blocks) const {
    const value &v = before(t), &w = after(t);
    const mesh_place has = place(v, from), wants = place(w, to);
    list<block_of_tensor> found(1);
    for (int d = 0; d < w.rank(); ++d) {
      const interval here = held(v, d, plan.windows, e, has), goal = held(w, d, plan.windows, e, wants);
      const std::int64_t extent = e.dim(w.dims[d]);
      list<block_of_tensor> next;
      for (block_of_tensor b : found)
        for (const interval wanted : {goal, goal.end > extent ? goal.shifted(-extent) : interval{}}) {
          b.at[std::size_t(d)] = here.common(wanted);
          if (b.at[std::size_t(d)].size() > 0) next.push_back(b);
        }
      found.swap(next);
    }
    for (const block_of_tensor& b : found) {
      bool is_new = true;
      for (const block_of_tensor& other : blocks) is_new = is_new && !(other == b);
      if (is_new) blocks.push_back(b);
    }
  }
  /// The members of the group on each node.
  constexpr list<list<std::int64_t>> members_of_nodes() const {
    list<list<std::int64_t>> all;
    list<int> known;  // the nodes in the order of their first members
    for (std::int64_t m = 0; m < size; ++m) {
      const int node = node_of(m);
      std::size_t i = 0;
      while (i < known.size() && known[i] != node) ++i;
      if (i == known.size()) {
        known.push_back(node);
        all.push_back({});
      }
      all[i].push_back(m);
    }
    return all;
  }
  constexpr block_of_tensor shard(const value& v, std::int64_t m) const {
    block_of_tensor b;
    const mesh_place at = place(v, m);
    for (int d = 0; d < v.rank(); ++d) b.at[std::size_t(d)] = held(v, d, plan.windows, e, at);
    return b;
  }
  /// Bytes if each node receives an element once that its members need and none of them has.
  constexpr std::int64_t moved() const {
    /// One shard, which several members may hold.
    struct origin {
      block_of_tensor shard;
      std::int64_t member;
      list<char> is_on;  // by node
    };
    const list<list<std::int64_t>> members = members_of_nodes();
    std::int64_t total = 0;
    for (int t = 0; t < step.inputs; ++t) {
      list<origin> origins;
      for (std::size_t n = 0; n < members.size(); ++n)
        for (const std::int64_t m : members[n]) {
          const block_of_tensor held_here = shard(before(t), m);
          std::size_t i = 0;
          while (i < origins.size() && !(origins[i].shard == held_here)) ++i;
          if (i == origins.size()) origins.push_back({held_here, m, list<char>(members.size(), 0)});
          origins[i].is_on[n] = 1;
        }
      for (const origin& from : origins)
        for (std::size_t n = 0; n < members.size(); ++n) {
          if (from.is_on[n]) continue;
          list<block_of_tensor> blocks;
          for (const std::int64_t to : members[n]) add_common(t, from.member, to, blocks);
          if (!blocks.empty()) total += elements_in_any(blocks, after(t).rank()) * size_of(before(t).type);
        }
    }
    return total;
  }
  /// Bytes if each node receives the shard of each member of other nodes once.
  constexpr std::int64_t gathered() const {
    std::int64_t total = 0;
    for (std::int64_t m = 0; m < size; ++m)
      for (int t = 0; t < step.inputs; ++t) total = saturating_sum(total, saturating_product(bytes(before(t), m), spread().nodes - 1));
    return total;
  }
  /// True if a group before this one along the axes of a mask has its members on the same nodes. If so, the two groups divide the work of a
  /// sum.
  constexpr bool has_earlier_twin(std::uint32_t replicas) const {
    const int start = first_of_group(first, replicas, e);
    for (std::int64_t k = 0;; ++k) {
      const int other = member_of_group(start, k, replicas, e);
      if (other == first) return false;
      bool same = true;
      for (std::int64_t m = 0; same && m < size; ++m)
        same = node_of(m) == nodes[std::size_t(member_of_group(other, m, axes, e))];
      if (same) return true;
    }
  }
  constexpr nodes_of_group spread() const { return group_on_nodes(axes, e, nodes, first); }

  constexpr std::int64_t between_nodes() const {
    const nodes_of_group g = spread();
    if (g.nodes <= 1) return 0;
    if (is_looped_product(step.kind)) return bytes_between_nodes(step.kind, g, plan.bytes_received(step, e));
    if (const operation& kind = traits(step.kind); !kind.sums) return kind.in_rings && gathers_whole_shards() ? gathered() : moved();
    std::int64_t total = 0, most = 0;
    for (int t = 0; t < step.inputs; ++t) {
      most = saturating_sum(most, shard_elements(before(t), plan.windows, e) * size_of(before(t).type));
      if (is_all_reduce(step.kind)) total = saturating_sum(total, bytes(before(t), 0));
      else for (std::int64_t m = 0; m < size; ++m) total = saturating_sum(total, bytes(after(t), m));
    }
    if (!is_all_reduce(step.kind)) return saturating_product(total, g.nodes - 1);
    return saturating_product(total, saturating_product(most, size) <= small_sum_bytes ? g.pairs : 2 * (g.nodes - 1));
  }
};
}  // namespace detail

/// Bytes that all devices together receive from other nodes in a step of a plan, if device d is on node[d]. Exact, except for looped
/// einsums of uneven shards, and sums in which a node has several partial sums. @see summation
constexpr std::int64_t bytes_between_nodes(const plan_view& plan, const node& step, const extents& e, list_view<int> node) {
  std::int64_t total = 0;
  if (!traits(step.kind).collective) return total;
  const std::uint32_t replicas = detail::replica_axes(plan, step, e);
  const std::uint32_t axes = step.attr.axes | (traits(step.kind).sums ? 0 : replicas);
  for (int device = 0; device < int(node.size()); ++device)
    if (detail::first_of_group(device, axes, e) == device) {
      const detail::group_traffic group{plan, step, e, node, axes, device};
      if (!traits(step.kind).sums || !group.has_earlier_twin(replicas)) total += group.between_nodes();
    }
  return total;
}
/// The same for all steps of a plan. Steps of a loop count once.
constexpr std::int64_t bytes_between_nodes(const plan_view& plan, const extents& e, list_view<int> node) {
  std::int64_t total = 0;
  for (const gshard::node& step : plan.steps) total += bytes_between_nodes(plan, step, e, node);
  return total;
}

}}  // namespace gshard::v0

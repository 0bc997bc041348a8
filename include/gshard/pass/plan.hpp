// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The plan: the constant table of steps that every device runs on its shards, with its collectives and bytes.

#include <gshard/base/list_view.hpp>
#include <gshard/ir/graph.hpp>
#include <gshard/ir/mesh.hpp>
#include <gshard/pass/cost/cost.hpp>
#include <gshard/pass/reshard/halo.hpp>
#include <gshard/pass/schedule/lifetime.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 {

/// The steps that every device runs on its shards, as a constant expression. Executor, cost model, reports and audit read it, and do not
/// depend on each other.
///
/// A communication step moves data between devices that differ only along the mesh axes in attr.axes, a mask. The shardings of
/// operand i and result i define its data. A step may move several tensors together. A looped einsum is an einsum that gathers an operand,
/// or scatters its partial sums, block by block. @see ring_operand
///
/// The steps from a loop_begin to its loop_end repeat until the operand of a loop_test is 0. All counts of steps, bytes and seconds of a
/// plan include one iteration. @see while_loop
struct plan_view {
  mesh_shape mesh;
  list_view<dim> dims;
  list_view<value> values;
  list_view<lifetime> lifetimes;
  list_view<node> steps;
  list_view<parameter> parameters;
  list_view<port> inputs, outputs;
  list_view<window> windows{};
  list_view<int> orders{};  // the table of device_orders

  constexpr const value& at(std::int32_t v) const { return values[std::size_t(v)]; }

  /// The devices of a sharding with a device order of its own, or empty.
  constexpr list_view<int> order_of(const sharding& s) const {
    return s.order == 0 ? list_view<int>{} : device_orders{orders, mesh.static_devices()}[s.order];
  }

  /// Steps that perform an operation. A combined step counts once for each kind of its moves.
  constexpr int count(op kind) const {
    int n = 0;
    for (const node& s : steps) n += performs(s, kind);
    return n;
  }
  /// Steps that communicate. A combined step counts once, because it starts once.
  constexpr int collectives() const {
    int n = 0;
    for (const node& s : steps) n += traits(s.kind).collective;
    return n;
  }
  /// Bytes that one device receives in a step, at the largest shard. `of`: in its moves of this kind alone.
  constexpr std::int64_t bytes_received(const node& step, const extents& e, op of = op::count_) const {
    if (!traits(step.kind).collective) return 0;
    if (!is_looped_product(step.kind)) {
      if (at(step.input(0)).layout.order | at(step.output()).layout.order)
        return bytes_between_orders(at(step.input(0)), at(step.output()), windows, orders, e);
      return gshard::bytes_received(step, values, windows, e, of);
    }
    const std::uint32_t axes = step.attr.axes;
    const value v = sent(at(ring_operand(step)));
    const sharding whole = v.layout.without(axes);
    return ring_carries_sum(step) ? gshard::bytes_received(op::reduce_scatter, axes, v, whole, v.layout, e)
                             : gshard::bytes_received(op::all_gather, axes, v, v.layout, whole, e);
  }
  /// Bytes that one device receives in all moves of a kind, or in all moves. The bytes of the kinds add up to the total.
  constexpr std::int64_t bytes_received(op kind, const extents& e) const {
    std::int64_t total = 0;
    for (const node& s : steps)
      if (performs(s, kind)) total += bytes_received(s, e, kind);
    return total;
  }
  constexpr std::int64_t bytes_received(const extents& e) const {
    std::int64_t total = 0;
    for (const node& s : steps) total += bytes_received(s, e);
    return total;
  }
  /// The parameter named `name`, or null.
  constexpr const parameter* find(std::string_view name) const {
    for (const parameter& p : parameters)
      if (p.name.view() == name) return &p;
    return nullptr;
  }
  /// The extents of all dims, including derived ones; -1 for a letter that is not bound.
  constexpr extents bind(const gshard::dims& bound, list_view<int> axes) const {
    extents e;
    for (std::size_t a = 0; a < axes.size(); ++a) e.axes[a] = axes[a];
    for (const dim& d : dims)
      e.dims.push_back(d.what == dim::kind::bound ? bound.find(d.letter) : derived_extent(d, e.dims, axes));
    e.known_axes = (1u << axes.size()) - 1u;
    return e;
  }
};

/// True if a step writes into the storage of a parameter.
constexpr bool writes_parameters(const plan_view& plan, const node& step) {
  for (int o = 0; o < step.outputs && !traits(step.kind).alias; ++o)
    if (plan.lifetimes[std::size_t(plan.lifetimes[std::size_t(step.output(o))].root)].persistent) return true;
  return false;
}
/// The first such step, or the number of steps.
constexpr std::size_t first_write(const plan_view& plan) {
  std::size_t i = 0;
  while (i < plan.steps.size() && !writes_parameters(plan, plan.steps[i])) ++i;
  return i;
}

}}  // namespace gshard::v0

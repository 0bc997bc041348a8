// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The plan: the constant table of steps that every device runs on its shards, with its collectives and bytes.

#include <gshard/core/base/counting.hpp>
#include <gshard/core/base/list.hpp>
#include <gshard/core/base/list_view.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/ir/mesh.hpp>
#include <gshard/core/plan/lifetime.hpp>
#include <gshard/core/plan/received.hpp>
#include <gshard/core/reshard/cost.hpp>
#include <gshard/core/reshard/halo.hpp>

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

  /// The devices of a sharding with its own device order, otherwise empty.
  constexpr list_view<int> order_of(const sharding& s) const {
    return s.order == 0 ? list_view<int>{} : device_orders{orders, int(mesh.static_devices())}[s.order];
  }

  /// Steps that perform an operation. A combined step counts once for each kind of its moves.
  constexpr int count(op_ref kind) const {
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
  /// True if the bytes of all tensors of a step, and of their shards on these devices, can be counted.
  constexpr bool is_countable(const node& step, const extents& e) const {
    std::int64_t devices = 1;
    for (int a = 0; a < mesh.count; ++a) devices = e.axis(a) < 1 ? uncountable : detail::saturating_product(devices, e.axis(a));
    bool counts = devices <= max_devices;
    for (int i = 0; i < step.inputs; ++i) counts = counts && gshard::is_countable(at(step.input(i)), e);
    for (int o = 0; o < step.outputs; ++o) counts = counts && gshard::is_countable(at(step.output(o)), e);
    return counts;
  }
  /// Bytes that the busiest device receives in a step. Exact for any extents, including uneven and empty shards, windows and looped
  /// einsums. A ragged exchange counts all rows as in use, which is the maximum. Several moves of one step count together. `of`: only the
  /// moves of this kind, on the same device. `uncountable` if the extents are not bound, or if a tensor has more than `max_tensor_bytes`.
  /// @see executor::received, which counts the same in runs
  constexpr std::int64_t bytes_received(const node& step, const extents& e, op_ref of = op::none) const {
    if (!traits(step.kind).collective) return 0;
    if (!is_countable(step, e)) return uncountable;
    if (!is_looped_product(step.kind) && (at(step.input(0)).layout.order | at(step.output()).layout.order))
      return bytes_between_orders(at(step.input(0)), at(step.output()), windows, orders, e);
    return detail::step_traffic(step, values, windows, e).most(of);
  }
  /// The sum over all steps, or over the moves of a kind. No device receives more in a run, and often one receives as much. The bytes of
  /// the kinds add up to the total.
  constexpr std::int64_t bytes_received(op_ref kind, const extents& e) const {
    std::int64_t total = 0;
    for (const node& s : steps)
      if (performs(s, kind)) total = detail::saturating_sum(total, bytes_received(s, e, kind));
    return total;
  }
  constexpr std::int64_t bytes_received(const extents& e) const {
    std::int64_t total = 0;
    for (const node& s : steps) total = detail::saturating_sum(total, bytes_received(s, e));
    return total;
  }
  /// The parameter named `name`, or null.
  constexpr const parameter* find(std::string_view name) const {
    for (const parameter& p : parameters)
      if (p.name.view() == name) return &p;
    return nullptr;
  }
  /// The extents of all dims and mesh axes, including derived ones. Extents that the program states need not be given. If an extent is
  /// neither given nor stated, it is -1 for a dim and 0 for an axis.
  constexpr extents bind(const gshard::dims& bound, list_view<int> axes) const {
    extents e;
    for (int a = 0; a < mesh.count || std::size_t(a) < axes.size(); ++a) {
      const bool given = std::size_t(a) < axes.size();
      if (!given && mesh.static_extent(a) == dynamic) continue;
      e.axes[std::size_t(a)] = given ? axes[std::size_t(a)] : mesh.static_extent(a);
      e.known_axes |= 1u << a;
    }
    for (const dim& d : dims) {
      const bool is_bound = d.what == dim::kind::bound, given = is_bound && bound.has(d.letter), known = is_bound && (given || d.known);
      e.dims.push_back(given ? bound.find(d.letter) : known ? d.number : derived_extent(d, e.dims, e.axes));
      e.known_dims.push_back(is_bound ? known : detail::is_known(d, e));
    }
    return e;
  }
};

/// A plan in growing tables. The passes return it, at compile time or at run time.
struct plan_tables {
  mesh_shape mesh;
  list<dim> dims;
  list<value> values;
  list<lifetime> lifetimes;
  list<node> steps;
  list<parameter> parameters;
  list<port> inputs, outputs;
  list<window> windows;
  list<int> orders;
  diagnostic problem;

  constexpr plan_view view() const { return {mesh, dims, values, lifetimes, steps, parameters, inputs, outputs, windows, orders}; }
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

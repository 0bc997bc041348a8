// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Compiles a traced graph into a plan: propagate, decompose, partition, schedule.

#include <gshard/core/base/list.hpp>
#include <gshard/core/ir/canonical_order.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/ir/mesh.hpp>
#include <gshard/core/ir/permute_nodes.hpp>
#include <gshard/core/partition/partitioner.hpp>
#include <gshard/core/pass/decompose.hpp>
#include <gshard/core/pass/positions.hpp>
#include <gshard/core/pass/propagate.hpp>
#include <gshard/core/pass/shard_further.hpp>
#include <gshard/core/plan/lifetime.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/core/program/program_options.hpp>
#include <gshard/core/reshard/cost.hpp>
#include <gshard/core/schedule/recompute.hpp>
#include <gshard/core/schedule/while_loop.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 {

namespace detail {

constexpr std::string_view letter_of(const graph& g, int d) { return {&g.dims[std::size_t(d)].letter, 1}; }

/// Reports a static extent that is not a multiple of the static extents of the axes that shard it.
constexpr void check_divisibility(graph& g, std::int32_t v, const tensor_name& name, const mesh_shape& mesh, const gshard::dims& known) {
  const value& t = g.at(v);
  for (int d = 0; d < t.rank(); ++d) {
    const dim& whole = g.dims[std::size_t(t.dims[d])];
    const std::int64_t extent = whole.what == dim::kind::bound   ? known.find(whole.letter)
                                : whole.what == dim::kind::fixed ? whole.number
                                                                 : -1;
    if (extent < 0) continue;
    std::int64_t shards = 1;
    for (int i = 0; i < t.layout[d].size(); ++i)
      if (mesh.static_extent(t.layout[d][i]) != dynamic) shards *= mesh.static_extent(t.layout[d][i]);
    if (extent % shards != 0)
      g.problem.report(fault::does_not_divide, name.view(), letter_of(g, t.dims[d]), diagnostic::nearest(extent),
                       diagnostic::nearest(shards));
  }
}

/// Reports sizes that cannot be counted at the known extents of a program: extents that are negative or beyond `max_tensor_bytes`, meshes
/// of more than `max_devices`, and tensors of more than `max_tensor_bytes`. `e`: the extents for planning. Assumed extents become 1 if the
/// bytes of some tensor could not be counted with them.
constexpr diagnostic check_countable(const graph& g, const mesh_shape& mesh, const gshard::dims& known, extents& e) {
  diagnostic problem;
  for (std::size_t i = 0; i < known.count; ++i)
    if (const auto& [letter, extent] = known.entries[i]; extent < 0 || extent > max_tensor_bytes)
      problem.report(fault::bad_range, "extent", {&letter, 1}, extent < 0 ? diagnostic::nearest(extent) : diagnostic::no_number);
  if (mesh.static_devices() > max_devices) problem.report(fault::bad_range, "mesh", "extents");
  bool assumes_less = false;
  double largest = 1, bounds[max_rank + 1]{16};  // by rank: an upper bound of the bytes of all tensors
  for (const std::int64_t extent : e.dims) largest = double(extent) > largest ? double(extent) : largest;
  for (int rank = 0; rank < max_rank; ++rank) bounds[rank + 1] = bounds[rank] * largest;
  if (problem || bounds[max_rank] <= double(max_tensor_bytes)) return problem;
  const std::int64_t* const extent_of = e.dims.data();
  for (const value& v : g.values) {
    if (bounds[v.dims.count] <= double(max_tensor_bytes)) continue;
    double most = 16;  // an upper bound of the bytes. Without calls, because there are many tensors
    std::uint64_t left = v.dims.bits;
    for (int d = 0; d < v.dims.count; ++d, left >>= dim_list::width)
      if (const std::int64_t extent = extent_of[left & dim_list::largest]; extent > 1) most *= double(extent);
    if (most <= double(max_tensor_bytes)) continue;
    byte_count all(size_of(v.type)), stated(size_of(v.type));
    for (int d = 0; d < v.rank(); ++d) {
      all.times(e.dim(v.dims[d]));
      if (e.knows_dim(v.dims[d])) stated.times(e.dim(v.dims[d]));
    }
    assumes_less = assumes_less || !all.is_countable();
    if (stated.is_countable()) continue;
    const node* const made = v.producer < 0 ? nullptr : &g.nodes[std::size_t(v.producer)];
    problem.report(fault::too_large, made               ? name_of(*made)
                                     : v.parameter >= 0 ? g.parameters[std::size_t(v.parameter)].name.view()
                                                        : "in");
    if (made) problem.name_place(made->place.line, made->place.scope);
    return problem;
  }
  for (std::size_t i = 0; assumes_less && i < e.dims.size(); ++i)
    if (!e.knows_dim(int(i))) e.dims[i] = 1;
  return problem;
}

/// The extents for planning a program: known extents, and assumed extents for the rest. Reports sizes that cannot be counted.
constexpr extents planned_extents(graph& g, const mesh_shape& mesh, const compile_options& options) {
  extents e = assume_extents(g.dims, mesh, options.known, options.start_bytes, options.assumed, options.assumed_axes);
  if (const diagnostic problem = check_countable(g, mesh, options.known, e); problem && !g.problem) g.problem = problem;
  return e;
}

}  // namespace detail

/// A graph as a plan whose steps are whole operations. `describe` prints it between the passes.
constexpr plan_view view_of(const graph& g, const mesh_shape& mesh) {
  return {mesh, g.dims, g.values, {}, g.nodes, g.parameters, g.inputs, g.outputs, g.windows, g.orders};
}

/// An observer of `compile` that does nothing.
inline constexpr auto no_observer = [](std::string_view, const plan_view&) {};

/// All passes after tracing: propagate, decompose, partition, recompute, lifetimes. Their first fault is `problem` of the result.
/// `observer(pass, program)` is called with the graph after "trace", "propagate" and "decompose", and with the plan after "partition".
/// Constexpr, so the same passes run at compile time and in a debugger.
/// @see trace, program, view_of
template <class Graph, class Observer = decltype(no_observer)>
constexpr plan_tables compile(Graph& g, const mesh_shape& mesh, const compile_options& options, const Observer& observer = no_observer) {
  plan_tables p;
  observer("trace", view_of(g, mesh));
  p.mesh = mesh;
  if (!g.problem && g.while_loops) detail::check_loops(g);
  if (!g.problem) {
    const extents assumed = detail::planned_extents(g, mesh, options);
    if (!g.problem) {
      detail::canonical_order order(g);
      propagate(g, assumed, {order.begin(), order.size()});
      detail::shard_further(g, assumed);
      want_annotated(g);
      observer("propagate", view_of(g, mesh));
      decompose(g, mesh, assumed, options.implicit_moves == strictness::automatic);
      observer("decompose", view_of(g, mesh));
      detail::set_positions(g);
      if (order.size() == g.nodes.size()) {
        detail::permute_nodes(g, order.begin());
      } else {
        detail::canonical_order of_decomposed(g);
        detail::permute_nodes(g, of_decomposed.begin());
      }
    }
  }
  for (const parameter& q : g.parameters)
    if (!g.problem && !options.uneven) detail::check_divisibility(g, q.value, q.name, mesh, options.known);
  for (const port& q : g.inputs)
    if (!g.problem && !options.uneven) detail::check_divisibility(g, q.value, q.name, mesh, options.known);
  extents assumed;
  if (!g.problem) assumed = detail::planned_extents(g, mesh, options);  // decompose has added tensors
  if (!g.problem) {
    const partition_options how{options.implicit_moves, options.partial_outputs, options.loop_bytes, options.combine_bytes,
                                        options.only_partial_sums};
    detail::partitioned parts = detail::partition(g, mesh, assumed, how);
    if (!g.remats.empty()) detail::rematerialize(parts.values, parts.steps, parts.parameters, parts.inputs, parts.outputs, g.remats);
    p.lifetimes = detail::lifetimes(parts.values, parts.steps, parts.parameters, parts.inputs, parts.outputs);
    if (g.while_loops) detail::keep_through_loops(p.lifetimes, parts.steps);
    p.values = static_cast<list<value>&&>(parts.values);
    p.steps = static_cast<list<node>&&>(parts.steps);
    p.parameters = static_cast<list<parameter>&&>(parts.parameters);
    p.inputs = static_cast<list<port>&&>(parts.inputs);
    p.outputs = static_cast<list<port>&&>(parts.outputs);
  }
  p.dims = g.dims;
  p.windows = g.windows;
  p.orders = g.orders;
  for (dim& d : p.dims)
    if (d.what == dim::kind::bound && options.known.has(d.letter)) {
      d.known = true;
      d.number = options.known.find(d.letter);
    }
  p.problem = g.problem;
  if (!p.problem) observer("partition", p.view());
  return p;
}

}}  // namespace gshard::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The forms (shardings and halos) in which a partitioned node takes its operands, their costs, and partial sums that pass through it.

#include <gshard/core/base/list.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/partition/convolution.hpp>
#include <gshard/core/partition/layout_cache.hpp>
#include <gshard/core/partition/strategy.hpp>
#include <gshard/core/reshard/cost.hpp>
#include <gshard/core/reshard/halo.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// The inputs of choosing a strategy, except the node.
struct planning {
  graph& g;  ///< Propagation has set its shardings. Windows for convolutions are added to its table.
  const extents& e;
  int axes;  ///< The number of mesh axes.
  const layout_cache& cache;
  const list<char>& needs_complete;    ///< By tensor: some reader needs its sum.
  const list<char>& may_stay_partial;  ///< By tensor: an output, or an addend of a deferred sum, that may be partial.
};

/// The axes whose devices a dim counts, one index per device. 0: it does not count devices.
constexpr std::uint32_t axes_counted_by(const graph& g, int dim) {
  const gshard::dim& d = g.dims[std::size_t(dim)];
  return d.what == dim::kind::blocks && d.number == 1 ? d.first : 0u;
}

/// True if each device's block of a dim equals the part that its block of the window's dim reads. If two dims merge and the first counts
/// devices, each of its indices is one block of the result, for any extent.
constexpr bool reads_own_block(const planning& p, const window& w, int dim, const short_list& axes) {
  const bool merges = w.stride_dim != window::none && w.stride_dim == w.taps_dim;
  return (merges && !axes.empty() && axes_counted_by(p.g, w.over) == axes.mask()) || reads_its_block(w, dim, axes, p.e);
}

/// The form in which the node takes operand i.
constexpr sharded_form operand_form(const planning& p, const node& n, int i, const strategy& how, const partial_state& partial) {
  const short_list& factors = n.rule.in[i];
  sharded_form form{sharding_of(factors, how, partial.of_operand(i)), {}};
  if (n.rule.windows.empty()) return form;
  const dim_list& dims = p.g.at(n.input(i)).dims;
  bool halo = false, part_of_whole = false;
  for (int d = 0; d < factors.size(); ++d) {
    const int row = traits(n.kind).taps ? window_under(p.g, n, i, d, how, form.layout[d]) : window_row(n, i, d);
    const bool whole = form.layout[d].empty();
    const window& read = p.g.windows[std::size_t(row)];
    const bool needed = row && (whole ? reads_less(read, dims[d], p.e) : !reads_own_block(p, read, dims[d], form.layout[d]));
    form.windows.push_back(needed ? row : 0);
    (whole ? part_of_whole : halo) |= needed;
  }
  if (halo) return form;
  // Moving only the part that is read is cheaper, unless the replicated form exists.
  if (std::int32_t from = -1;
      !part_of_whole || p.cache.cost(n.input(i), form, from) >= p.cache.cost(n.input(i), form.layout))
    form.windows = {};
  return form;
}

/// The cost of resharding operand i to the form in which the node takes it.
constexpr std::int64_t operand_cost(const planning& p, const node& n, int i, const strategy& how, const partial_state& partial) {
  if (n.rule.windows.empty()) return p.cache.cost(n.in[i], sharding_of(n.rule.in[i], how, partial.of_operand(i)));
  const sharded_form form = operand_form(p, n, i, how, partial);
  std::int32_t from = -1;
  return form.windows.empty() ? p.cache.cost(n.input(i), form.layout) : p.cache.cost(n.input(i), form, from);
}

/// The windows through which devices hold a reshape's result, if two dims become one and the first is sharded unevenly.
constexpr dim_list windows_of_result(const planning& p, const node& n, const sharding& made) {
  dim_list windows;
  if (n.attr.change != reshape_kind::merge) return windows;
  const int at = n.attr.dim, row = n.attr.window;
  if (made[at].empty() || reads_own_block(p, p.g.windows[std::size_t(row)], p.g.at(n.output()).dims[at], made[at])) return windows;
  for (int d = 0; d < made.rank; ++d) windows.push_back(d == at ? row : 0);
  return windows;
}

/// The axes over which a tensor is a partial sum, as it was computed.
constexpr std::uint8_t partial_sum_axes(const planning& p, std::int32_t tensor) {
  const sharding& s = p.cache.first_layout(tensor);
  return s.pending == reduction::sum ? s.partial : std::uint8_t(0);
}

/// The partial sum of a scatter's rows, if its result is then added to a tensor that is partial over the same axes.
constexpr partial_state partial_rows_of_scatter(const planning& p, const node& n) {
  const std::uint8_t axes = partial_sum_axes(p, n.in[1]);
  const std::int32_t made = n.output();
  if (axes == 0 || p.needs_complete[std::size_t(made)]) return {};
  for (const node& next : p.g.nodes) {
    if (next.kind != op::map || next.inputs != 2 || (next.in[0] != made && next.in[1] != made)) continue;
    const std::int32_t other = next.in[next.in[0] == made ? 1 : 0];
    if (p.cache.first(other) >= 0 && !p.needs_complete[std::size_t(other)] && partial_sum_axes(p, other) == axes)
      return {.axes = axes, .per_operand = true, .second = axes};
  }
  return {};
}

/// The partial sums that pass through a node. The node must be linear, and all operands partial over the same axes. No other reader may
/// need one of them complete.
constexpr partial_state partial_through(const planning& p, const node& n) {
  if (n.kind->ids_of_result) return partial_rows_of_scatter(p, n);
  if (!is_linear(n)) return {};
  for (int i = 0; i < n.inputs; ++i)
    if (p.needs_complete[std::size_t(n.input(i))]) return {};
  const sharding& first = p.cache.first_layout(n.input(0));
  for (int i = 1; i < n.inputs; ++i)
    if (const sharding& s = p.cache.first_layout(n.in[i]); s.partial != first.partial || s.pending != first.pending) return {};
  if (first.partial == 0 || (first.pending != reduction::sum && !traits(n.kind).alias)) return {};
  return {first.partial, first.pending};
}

}}}  // namespace gshard::v0::detail

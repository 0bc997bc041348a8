// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Partitions convolutions: the windows (halos) through which operands are read when positions or taps are sharded.
//
// Dim d of the first operand (the input) is read at positions and at taps. Positions are a factor of the result; taps are a factor of the
// second operand (the kernel). In gradients positions and taps are exchanged.

#include <gshard/core/ir/graph.hpp>
#include <gshard/core/partition/layout_cache.hpp>
#include <gshard/core/partition/strategy.hpp>
#include <gshard/core/reshard/cost.hpp>
#include <gshard/core/reshard/halo.hpp>

#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// The window through which dim d of the first operand is read.
constexpr const window& window_of(const graph& g, const node& n, int d) { return g.windows[std::size_t(window_row(n, 0, d))]; }

/// The factor that the second operand shares with dim d of the first: the taps, or in a gradient the positions.
constexpr int factor_of_second(const node& n, int d) {
  const int tap = tap_factor(n, 0, d);
  return n.rule.in[1].contains(tap) ? tap : n.rule.in[0][d];
}

/// All tap factors of a node, a bit each.
constexpr std::uint32_t tap_factors(const node& n) {
  std::uint32_t taps = 0;
  if (!traits(n.kind).taps) return taps;
  for (int d = 0; d < n.rule.in[0].size(); ++d)
    if (const int tap = tap_factor(n, 0, d); tap >= 0) taps |= 1u << tap;
  return taps;
}

/// The row of a window in the graph's table; reports a full table.
constexpr int add_window(graph& g, const window& w) {
  const int row = row_of(g.windows, w);
  if (row == 0) g.problem.report(fault::too_many_dims, "window");
  return row;
}

/// The window through which a convolution reads dim d of operand i under a strategy. `axes`: the axes that shard the dim. Taps or the
/// second operand may determine them.
constexpr int window_under(graph& g, const node& n, int i, int d, const strategy& how, short_list& axes) {
  const int tap = tap_factor(n, i, d);
  if (tap >= 0) {
    const short_list& second = how.axes_of_factor[factor_of_second(n, d)];
    if (how.keeps_first_operand && !second.empty()) {
      axes = second;
      return 0;
    }
    if (axes.empty() && !how.axes_of_factor[tap].empty()) {
      axes = how.axes_of_factor[tap];
      return add_window(g, window_of(g, n, d).by_taps());
    }
  }
  if (i == 1 && how.keeps_first_operand && !axes.empty())
    for (int k = 0; k < n.rule.in[0].size(); ++k)
      if (const int t = tap_factor(n, 0, k), f = n.rule.in[1][d]; t >= 0 && factor_of_second(n, k) == f) {
        const window& read = window_of(g, n, k);
        return add_window(g, (f == t ? read.by_taps() : read).inverse(g.at(n.input(0)).dims[k]));
      }
  return window_row(n, i, d);
}

/// True if the strategy shards both operands along a windowed dim, so that either of them may stay in place.
constexpr bool may_keep_first_operand(const layout_cache& cache, const node& n, const strategy& how) {
  const sharding& first = cache.first_layout(n.in[0]);
  for (int d = 0; d < first.rank; ++d)
    if (tap_factor(n, 0, d) >= 0 && !first[d].empty() && !how.axes_of_factor[factor_of_second(n, d)].empty()) return true;
  return false;
}

/// True if a device that keeps its block of the first operand reads at least twice its own shard of the second. In that case, the strategy
/// saves little.
constexpr bool reads_most_of_second(const graph& g, const extents& e, const node& n, const sharded_form& second) {
  value v = g.at(n.input(1));
  const std::int64_t share = shard_elements(v.dims, second.layout, e);
  v.layout = second.layout;
  v.windows = second.windows;
  return shard_elements(v, g.windows, e) >= 2 * share;
}

}}}  // namespace gshard::v0::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Finds tensors whose unused rows are zero, so that collectives move only the rows in use.

#include <gshard/core/base/list.hpp>
#include <gshard/core/ir/graph.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// The tensor [N,G,E] that counts the rows in use of a tensor [N,G,R,M]. In block [n,g] these come first; their number is the sum of
/// count[n,g,e] over e. All other rows are zero. -1 if this is not known. @see send_rows
constexpr std::int32_t row_counts(const graph& g, std::int32_t v) {
  v = without_annotations(g, v);
  if (g.at(v).rank() != 4 || g.at(v).producer < 0) return -1;
  const node& n = g.nodes[std::size_t(g.at(v).producer)];
  if (const auto& own = g.rules_of(n.kind).row_counts) return own(g, n);
  const operation& t = traits(n.kind);
  // Sums of such tensors with positive weights: zeros stay zeros, and none becomes -0.
  const bool converts = t.converts && is_real(g.at(v).type), scales = t.linear == linearity::always && n.attr.factor > 0;
  const bool adds = t.linear == linearity::of_function && n.attr.function->linear && n.inputs > 0;
  if (!t.elementwise || !(converts || scales || adds)) return -1;
  for (int i = 0; adds && i < n.inputs; ++i)
    if (!(n.attr.function->coefficient[std::size_t(i)] > 0)) return -1;
  const std::int32_t counts = row_counts(g, n.in[0]);
  for (int i = 1; counts >= 0 && i < n.inputs; ++i)
    if (n.in[i] != n.in[0] && row_counts(g, n.in[i]) != counts) return -1;
  return counts;
}

/// By tensor: 1 if `row_counts` may find the counts of its rows. This takes one pass over the nodes. Each call of `row_counts` walks to the
/// operation that counts.
constexpr list<char> tensors_of_counted_rows(const graph& g) {
  list<char> found_list(g.values.size(), 0);
  bool counts = false;
  for (const operation_rules* r : g.rules) counts = counts || r->row_counts;
  char* const found = found_list.data();
  const value* const values = g.values.data();
  for (std::size_t i = 0; counts && i < g.nodes.size(); ++i) {
    const node& n = g.nodes.data()[i];
    if (n.outputs == 0 || values[n.out[0]].dims.count != 4) continue;
    auto may = bool(g.rules_of(n.kind).row_counts);
    for (int k = 0; k < n.inputs; ++k) may = may || found[n.in[k]];
    for (int o = 0; may && o < n.outputs; ++o) found[n.out[o]] = 1;
  }
  return found_list;
}

/// True if an exchange over these axes moves whole rows, each to one device, so that it may omit unused rows.
constexpr bool moves_whole_rows(std::uint32_t axes, const value& rows, const sharding& from, const sharding& to) {
  constexpr int group_dims = 2, row_dim = 2, last_dim = 3;
  if (rows.rank() != 4 || !rows.windows.empty() || (from.order | to.order) != 0) return false;
  if (from.partial || to.partial || !from[row_dim].empty() || !to[row_dim].empty() || !from[last_dim].same(to[last_dim])) return false;
  std::uint32_t before = 0, after = 0;
  for (int d = 0; d < group_dims; ++d) {
    before |= from[d].mask();
    after |= to[d].mask();
  }
  return (axes & ~before) == 0 && (axes & ~after) == 0;
}
/// The sharding of the counts of rows in this sharding.
constexpr sharding sharding_of_counts(const sharding& rows) {
  sharding counts = sharding::replicated(3);
  for (int d = 0; d < 2; ++d) counts[d] = rows[d];
  return counts;
}

}}}  // namespace gshard::v0::detail

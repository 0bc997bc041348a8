// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Reshapes that merge or split dims without communication, although two mesh axes shard the merged dim.
//
// In [rows, columns] each device, or group of devices, has one row, and further axes shard each row. Merged, each device holds the same
// part of the same row: [rows@x, columns@y] becomes [rows*columns@x,y].

#include <gshard/core/ir/graph.hpp>
#include <gshard/core/partition/operands.hpp>
#include <gshard/core/reshard/cost.hpp>

#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// The sharding of the result of such a reshape (a merge or a split of dims), given the operand's sharding. `found` is false if the reshape
/// is not of this kind. The number of rows must be known and equal the devices of their axes, or the rows must count devices.
struct row_reshape {
  bool found = false;
  sharding to;
};
constexpr row_reshape reshape_of_rows(const planning& p, const node& n, const sharding& from) {
  const bool merges = n.attr.change == reshape_kind::merge;
  if (!merges && n.attr.change != reshape_kind::split) return {};
  const int at = n.attr.dim;
  const dim_list& parts = p.g.at(merges ? n.input(0) : n.output()).dims;
  const std::uint32_t counted = axes_counted_by(p.g, parts[at]);
  short_list rows, columns;
  if (merges) {
    rows = from[at];
    columns = from[at + 1];
  } else {
    std::int64_t blocks = 1;
    for (int i = 0; i < from[at].size(); ++i) {
      const bool of_rows = counted ? (counted >> from[at][i]) & 1u : blocks < p.e.dim(parts[at]);
      (of_rows && columns.empty() ? rows : columns).push_back(from[at][i]);
      if (columns.empty()) blocks *= p.e.axis(from[at][i]);
    }
  }
  if (from.partial || from.order || rows.empty() || columns.empty()) return {};
  const bool known = (rows.mask() & ~p.e.known_axes) == 0 && p.e.knows_dim(parts[at]) && p.e.devices(rows.mask()) == p.e.dim(parts[at]);
  if (!known && counted != rows.mask()) return {};
  sharding to = sharding::replicated(p.g.at(n.output()).rank());
  for (int d = 0; d < to.rank; ++d) {
    const int source = d <= at ? d : merges ? d + 1 : d > at + 1 ? d - 1 : d;
    if (d != at && (merges || d != at + 1)) to[d] = from[source];
  }
  to[at] = rows;
  for (int i = 0; i < columns.size(); ++i) to[merges ? at : at + 1].push_back(columns[i]);
  return {true, to};
}

/// The sharding of a merge's operand from which reshape_of_rows makes the wanted sharding. The first axes of the merged dim shard the rows,
/// one row each; the others shard each row. If there is none, it shards nothing.
constexpr sharding rows_for_merge(const planning& p, const node& n) {
  sharding rows;
  if (n.attr.change != reshape_kind::merge) return rows;
  const int at = n.attr.dim;
  const sharding& wanted = p.g.at(n.output()).layout;
  const int first = p.g.at(n.input(0)).dims[at];
  if (wanted.partial || wanted.order || !p.e.knows_dim(first) || (wanted[at].mask() & ~p.e.known_axes)) return rows;
  std::int64_t blocks = 1;
  int split = 0;
  while (split < wanted[at].size() && blocks < p.e.dim(first)) blocks *= p.e.axis(wanted[at][split++]);
  if (blocks != p.e.dim(first) || split == 0 || split == wanted[at].size()) return rows;
  rows.rank = std::uint8_t(wanted.rank + 1);
  for (int d = 0; d < wanted.rank; ++d)
    if (d != at) rows[d < at ? d : d + 1] = wanted[d];
  for (int i = 0; i < wanted[at].size(); ++i) rows[i < split ? at : at + 1].push_back(wanted[at][i]);
  return rows;
}

}}}  // namespace gshard::v0::detail

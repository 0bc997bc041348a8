// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/base/fixed_string.hpp>
#include <gshard/trace/builder.hpp>
#include <gshard/trace/parameter_scope.hpp>
#include <gshard/trace/rows.hpp>

#include <cstdint>

namespace gshard { inline namespace v0 {

/// gather(table, ids)[..., m] = table[ids[...], m]: an embedding. table: [V, M]; ids: int32 of any rank.
/// The rows of the table are whole on a device; its gradient is a scatter-add, a pending sum over the axes that cut ids.
constexpr symbol gather(symbol table, symbol ids) {
  builder& b = *table.owner;
  if (!detail::check_rank(b, table, 2, "gather")) return b.nothing();
  if (ids.rank() == max_rank) b.fail(fault::rank_mismatch, "gather", {}, max_rank - 1, max_rank);
  if (ids.get().type != dtype::i32) b.fail(fault::wrong_type, "gather", {}, 1);
  if (table.rank() != 2) b.fail(fault::rank_mismatch, "gather", {}, 2, table.rank());
  if (b.failed()) return b.nothing();
  rule loops;
  const int rank = ids.rank(), model = rank, row = rank + 1;
  loops.in[0].push_back(row);
  loops.in[0].push_back(model);
  loops.in[1] = detail::counting(rank);
  loops.out[0] = detail::counting(rank + 1);
  loops.block(row);
  dim_list dims = ids.get().dims;
  dims.push_back(table.get().dims[1]);
  return {&b, b.add_node(op::gather, {table.id, ids.id}, loops, {}, {{dims, table.get().type}})};
}

/// iota<"TU">(m)[t, u] = t as int32, or u with along = 1. Attributes: integer[0] = along.
template <fixed_string Letters>
constexpr symbol iota(const parameter_scope& m, int along = 0) {
  builder& b = m.owner();
  if (b.failed()) return b.nothing();
  const dim_list dims = b.dims_of(Letters.view(), "iota");
  rule loops;
  loops.out[0] = detail::counting(dims.size());
  attributes attr;
  attr.integer[0] = along;
  return {&b, b.add_node(op::iota, {}, loops, attr, {{dims, dtype::i32}})};
}

}}  // namespace gshard::v0

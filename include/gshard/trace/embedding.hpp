// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Lookups by index: gather (embeddings), scatter_add, iota and one_hot.

#include <gshard/base/fixed_string.hpp>
#include <gshard/trace/builder.hpp>
#include <gshard/trace/map.hpp>
#include <gshard/trace/parameter_scope.hpp>
#include <gshard/trace/rows.hpp>

#include <array>
#include <cstdint>

namespace gshard { inline namespace v0 {

namespace detail {
/// The factors of a lookup of table rows along `at`: of the table, the ids and the gathered rows. Table and ids share their first `batch`
/// dims.
struct row_factors {
  short_list table, ids, rows;
};
constexpr row_factors rows_along(int at, int ids_rank, int table_rank, int batch) {
  const int own = ids_rank - batch, rank = table_rank - 1 + own, row = rank;
  row_factors f{{}, {}, counting(rank)};
  for (int d = 0; d < ids_rank; ++d) f.ids.push_back(d < batch ? d : d - batch + at);
  for (int d = 0; d < table_rank; ++d) f.table.push_back(d < at ? d : d == at ? row : d - 1 + own);
  return f;
}
constexpr bool check_rows(symbol table, symbol ids, int at, int batch, std::string_view operation) {
  builder& b = *table.owner;
  if (!b.has(table) || !b.has(ids)) return false;
  if (at < 0 || at >= table.rank()) b.fail(fault::rank_mismatch, operation, {}, at + 1, table.rank());
  if (ids.get().type != dtype::i32) b.fail_type(operation, 1, ids.get().type, only(dtype::i32));
  if (batch < 0) b.fail_range(operation, "batch", batch);
  else if (batch > at) b.fail_range(operation, "batch, dim", batch, at);
  else if (batch > ids.rank()) b.fail_range(operation, "batch, rank of ids", batch, ids.rank());
  const int rank = table.rank() - 1 + ids.rank() - batch;
  if (rank > max_rank) b.fail(fault::rank_mismatch, operation, {}, max_rank, rank);
  for (int d = 0; d < batch && !b.failed(); ++d)
    if (!b.same_extent(table.get().dims[d], ids.get().dims[d])) b.fail(fault::dims_differ, operation, {}, 1, d);
  return !b.failed();
}

/// op::iota: the index along a dim, for a tensor of these dims.
constexpr symbol emit_iota(builder& b, const dim_list& dims, int along) {
  if (b.failed()) return b.nothing();
  sharding_rule rule;
  rule.out[0] = counting(dims.size());
  return {&b, b.add_node(op::iota, {}, rule, {.dim = along}, {{dims, dtype::i32}})};
}

/// op::scatter_add: row i of a table with these dims is the sum of the rows with id i.
constexpr symbol emit_scatter_add(symbol ids, symbol rows, int at, int batch, const dim_list& table) {
  builder& b = *rows.owner;
  if (b.failed()) return b.nothing();
  const row_factors f = rows_along(at, ids.rank(), table.size(), batch);
  sharding_rule rule;
  rule.in[0] = f.ids;
  rule.in[1] = f.rows;
  rule.out[0] = f.table;
  const attributes attr{.dim = at, .own = gather_attributes{batch}};
  return {&b, b.add_node(op::scatter_add, {ids.id, rows.id}, rule, attr, {{table, rows.get().type}})};
}
}  // namespace detail

/// gather(table, ids, dim)[a..., i..., c...] = table[a..., ids[i...], c...]: with dim = 0, an embedding. `batch`: the number of leading
/// dims that table and ids share. gather(table, ids, dim, batch)[b..., a..., i..., c...] = table[b..., a..., ids[b..., i...], c...].
/// Shapes: table [B..., A..., N, C...], int32 ids [B..., I...] -> [B..., A..., I..., C...].
/// Communicates: nothing, or, if the dim is sharded, the sum of every block's contribution (all_reduce or reduce_scatter), or an all_gather
/// of the table if that is cheaper.
/// Compile time: that table has this dim; that ids are int32; that batch dims are equal.
/// Throws: `gshard::error` on all processes, if an id is outside the dim.
/// @see scatter_add, one_hot
constexpr symbol gather(here table, symbol ids, int dim = 0, int batch = 0) {
  builder& b = *table.owner;
  if (b.failed() || !detail::check_rows(table, ids, dim, batch, "gather")) return b.nothing();
  const detail::row_factors f = detail::rows_along(dim, ids.rank(), table.rank(), batch);
  sharding_rule rule;
  rule.in[0] = f.table;
  rule.in[1] = f.ids;
  rule.out[0] = f.rows;
  if (!has_sums(table.get().type)) rule.block(f.table[dim]);  // this element type has no partial sums
  dim_list dims;
  for (int d = 0; d < dim; ++d) dims.push_back(table.get().dims[d]);
  for (int d = batch; d < ids.rank(); ++d) dims.push_back(ids.get().dims[d]);
  for (int d = dim + 1; d < table.rank(); ++d) dims.push_back(table.get().dims[d]);
  return {&b, b.add_node(op::gather, {table.id, ids.id}, rule, {.dim = dim, .own = gather_attributes{batch}}, {{dims, table.get().type}})};
}

/// scatter_add(x, ids, updates, dim, batch = 0): x, with every row of `updates` added to the row of x with its id along `dim`. The
/// transpose of gather.
/// Shapes: x [B..., A..., N, C...], int32 ids [B..., I...], updates [B..., A..., I..., C...] -> the shape of x.
/// Communicates: nothing if the dim is sharded. An axis that shards ids leaves a partial sum.
/// Compile time: ranks, dims and element types.
/// Throws: `gshard::error` on all processes, if an id is outside the dim.
/// @see gather
constexpr symbol scatter_add(here x, symbol ids, symbol updates, int dim = 0, int batch = 0) {
  builder& b = *x.owner;
  if (b.failed() || !detail::check_rows(x, ids, dim, batch, "scatter_add") ||
      !detail::require_elements(b, op::scatter_add, "scatter_add", {x, updates}))
    return b.nothing();
  const detail::row_factors f = detail::rows_along(dim, ids.rank(), x.rank(), batch);
  if (updates.rank() != f.rows.size()) b.fail(fault::rank_mismatch, "scatter_add", {}, f.rows.size(), updates.rank());
  for (int d = 0; d < updates.rank() && !b.failed(); ++d) {
    const int in_ids = f.ids.find(d), in_x = f.table.find(d);
    if (!b.same_extent(updates.get().dims[d], in_ids >= 0 ? ids.get().dims[in_ids] : x.get().dims[in_x]))
      b.fail(fault::dims_differ, "scatter_add", {}, 2, d);
  }
  return x + detail::emit_scatter_add(ids, updates, dim, batch, x.get().dims);
}

/// iota<"TU">(m)[t, u] = t, or u with along = 1.
/// Shapes: the dims of the letters, int32.
/// Communicates: nothing; every device computes its shard.
/// Compile time: that the program knows the letters.
/// Throws: nothing.
/// @see cast
template <fixed_string Letters>
constexpr symbol iota(const parameter_scope& m, int along = 0) {
  builder& b = m.owner();
  if (b.failed()) return b.nothing();
  return detail::emit_iota(b, b.dims_of(Letters.view(), "iota"), along);
}

namespace detail {
/// [I..., dim] of this type: 1 where ids[i...] is the index along the dim, else 0.
constexpr symbol emit_equal_index(symbol ids, int dim, dtype type) {
  builder& b = *ids.owner;
  if (b.failed()) return b.nothing();
  dim_list dims = ids.get().dims;
  dims.push_back(dim);
  const symbol index = emit_iota(b, dims, ids.rank());
  const symbol hit = emit_map_of(own_step<arithmetic::equal>, std::array<symbol, 2>{ids, index},
                                 std::array{counting(ids.rank()), counting(dims.size())}, index);
  return emit_cast(hit, type);
}
}  // namespace detail

/// one_hot<"E">(ids)[i..., e] = 1 where ids[i...] = e, else 0. one_hot<"E", double>(ids): in another element type than float. An id outside
/// the dim has a row of zeros. Integers have no gradient.
/// Shapes: int32 ids [I...] -> [I..., E].
/// Communicates: nothing; every device computes its shard.
/// Compile time: that the program knows the letter; that ids are int32.
/// Throws: nothing.
/// @see gather, iota
template <fixed_string Letter, class T = float>
constexpr symbol one_hot(here ids) {
  builder& b = *ids.owner;
  if (!b.has(ids)) return b.nothing();
  if (ids.get().type != dtype::i32) b.fail_type("one_hot", 0, ids.get().type, only(dtype::i32));
  const dim_list added = b.dims_of(Letter.view(), "one_hot");
  if (ids.get().dims.full() || added.size() != 1) b.fail(fault::rank_mismatch, "one_hot", {}, 1, added.size());
  return b.failed() ? b.nothing() : detail::emit_equal_index(ids, added[0], dtype_of<T>);
}

}}  // namespace gshard::v0

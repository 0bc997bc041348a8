// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Lookups by index: gather (embeddings) and scatter_add.

#include <gshard/core/grad/differentiator.hpp>
#include <gshard/core/ir/attributes.hpp>
#include <gshard/core/ir/op.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/map.hpp>

#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 {

namespace op {
inline constexpr operation gather{.id = 20, .name = "gather", .elements = all_elements, .by_size = true, .reads_what_it_writes = true,
    .repeatable = true, .linear = linearity::product, .ids = 1, .ids_along = line_dim::attribute};
inline constexpr operation scatter_add{.id = 21, .name = "scatter_add", .elements = reals | complexes, .linear = linearity::product,
    .ids = 0, .ids_along = line_dim::attribute, .ids_of_result = true};
}  // namespace op

/// gather, scatter_add.
struct gather_attributes {
  std::int32_t batch = 0;  ///< the number of leading batch dims

  static constexpr void each(auto& all, auto f) { f("batch", all.batch); }
};

namespace detail {

constexpr void gather_gradient(differentiator& d, const node& n);
constexpr void scatter_add_gradient(differentiator& d, const node& n);
inline constexpr operation_rules gather_rules{.of = op::gather, .gradient = gather_gradient};
inline constexpr operation_rules scatter_add_rules{.of = op::scatter_add, .gradient = scatter_add_gradient};

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
  if (at < 0 || at >= table.rank()) b.fail(fault::no_such_dim, operation, {}, at, table.rank());
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
  return {&b, b.add_node(b.use(scatter_add_rules), {ids.id, rows.id}, rule, attr, {{table, rows.get().type}})};
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
  return {&b, b.add_node(b.use(detail::gather_rules), {table.id, ids.id}, rule, {.dim = dim, .own = gather_attributes{batch}},
                         {{dims, table.get().type}})};
}
/// gather<1>(table, ids): the same with its numbers as template arguments, as on tensors outside of programs.
template <int Dim, int Batch = 0>
constexpr symbol gather(here table, symbol ids) {
  return gather(table, ids, Dim, Batch);
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
/// scatter_add<1>(x, ids, updates): the same with its numbers as template arguments, as on tensors outside of programs.
template <int Dim, int Batch = 0>
constexpr symbol scatter_add(here x, symbol ids, symbol updates) {
  return scatter_add(x, ids, updates, Dim, Batch);
}

namespace detail {

constexpr void gather_gradient(differentiator& d, const node& n) {
  const int batch = own<gather_attributes>(n).batch;
  d.add(n.input(0), emit_scatter_add(d.in(n, 1), d.gradient(n), n.attr.dim, batch, d.in(n, 0).get().dims));
}
constexpr void scatter_add_gradient(differentiator& d, const node& n) {
  d.add(n.input(1), gather(d.gradient(n), d.in(n, 0), n.attr.dim, own<gather_attributes>(n).batch));
}

}  // namespace detail

GSHARD_TAKES_NUMBERS(gather, (detail::call<2, symbol, symbol, int, int>::fits<Given...>), 1, 2, int, (detail::tensors<2>::fits<Given...>),
                     "gather(table, ids, dim = 0, batch = 0) takes two tensors of a program, a dim and a number of dims")
GSHARD_TAKES_NUMBERS(scatter_add, (detail::call<3, symbol, symbol, symbol, int, int>::fits<Given...>),
                     1, 2, int, (detail::tensors<3>::fits<Given...>),
                     "scatter_add(x, ids, updates, dim = 0, batch = 0) takes three tensors of a program, a dim and a number of dims")

}}  // namespace gshard::v0

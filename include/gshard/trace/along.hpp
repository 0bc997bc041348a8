// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Operations along one dim that need all its elements: cumsum, sort and top_k.

#include <gshard/trace/builder.hpp>

#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 {

/// Elements in order, with their original indices.
struct sorted {
  symbol values;
  symbol ids;  // int32
};

namespace detail {

/// A dim of x. Negative numbers count from the back.
constexpr int dim_from(symbol x, int dim) { return x.owner->failed() || dim >= 0 ? dim : dim + x.rank(); }

constexpr bool check_along(symbol x, int at, std::string_view operation) {
  builder& b = *x.owner;
  if (!require_real(b, operation, {x})) return false;
  if (at < 0 || at >= x.rank()) b.fail(fault::rank_mismatch, operation, {}, at + 1, x.rank());
  return !b.failed();
}

/// op::cumsum. An optional second operand has one number for every block of the dim. It is added to the block.
constexpr symbol emit_cumsum(symbol x, int at, bool exclusive, bool reverse) {
  builder& b = *x.owner;
  if (!check_along(x, at, "cumsum")) return b.nothing();
  sharding_rule rule;
  rule.in[0] = rule.out[0] = counting(x.rank());
  return {&b, b.add_node(op::cumsum, {x.id}, rule, {.dim = at, .own = cumsum_attributes{exclusive, reverse}},
                         {{x.get().dims, x.get().type}})};
}

/// op::sort, op::top_k.
constexpr sorted emit_sorted(op_ref kind, symbol x, int at, int count_dim, std::int32_t k, bool largest, bool nan_first = false) {
  builder& b = *x.owner;
  if (!check_along(x, at, name(kind))) return {b.nothing(), b.nothing()};
  sharding_rule rule;
  rule.in[0] = rule.out[0] = rule.out[1] = counting(x.rank());
  if (kind == op::sort) rule.block(at);
  dim_list dims = x.get().dims;
  dims.set(at, count_dim);
  b.add_node(kind, {x.id}, rule, {.dim = at, .own = sort_attributes{k, largest, nan_first}},
             {{dims, x.get().type}, {dims, dtype::i32}});
  return {b.result_of_last(0), b.result_of_last(1)};
}

/// op::scatter_along: zeros except dy[.., j, ..] at index ids[.., j, ..] of the dim.
constexpr symbol emit_scatter_along(symbol ids, symbol dy, int at, symbol like) {
  builder& b = *dy.owner;
  if (b.failed()) return b.nothing();
  sharding_rule rule;
  rule.out[0] = counting(like.rank());
  rule.in[0] = counting(like.rank());
  rule.in[0].set(at, like.rank());
  rule.in[1] = rule.in[0];
  rule.block(like.rank());
  return {&b, b.add_node(op::scatter_along, {ids.id, dy.id}, rule, {.dim = at}, {{like.get().dims, dy.get().type}})};
}

}  // namespace detail

/// cumsum(x, dim)[i] = sum of x[j] over j <= i along one dim. `exclusive`: j < i. `reverse`: j >= i, or j > i with both.
/// Shapes: [..., N, ...] -> the same. A negative `dim` counts from the back.
/// Communicates: nothing, or, if the dim is sharded, an all_gather of one number per block and row.
/// Compile time: that x has this dim; a real element type.
/// Throws: nothing.
/// @see sort, top_k
constexpr symbol cumsum(here x, int dim = -1, bool exclusive = false, bool reverse = false) {
  return detail::emit_cumsum(x, detail::dim_from(x, dim), exclusive, reverse);
}

/// sort(x, dim): the elements along one dim in ascending order, or `descending`, with their original indices (`sorted`). The sort is
/// stable. NaN counts as the largest number.
/// Shapes: [..., N, ...] -> values and int32 indices of the same shape. A negative `dim` counts from the back.
/// Communicates: nothing, or, if the dim is sharded, an all_to_all that shards another dim instead; an all_gather if there is no other.
/// Compile time: that x has this dim; a real element type.
/// Throws: nothing.
/// @see top_k, argmax
constexpr sorted sort(here x, int dim = -1, bool descending = false) {
  const int at = detail::dim_from(x, dim);
  if (!detail::check_along(x, at, "sort")) return {x.owner->nothing(), x.owner->nothing()};
  return detail::emit_sorted(op::sort, x, at, x.get().dims[at], 0, descending);
}

/// top_k(x, k, dim): the k largest elements along one dim, or the smallest, best first, with their original indices (`sorted`).
/// Shapes: [..., N, ...] -> values and int32 indices [..., k, ...]. A negative `dim` counts from the back.
/// Communicates: nothing, or, if the dim is sharded, an all_gather of the k best elements of every block.
/// Compile time: that x has this dim; 1 <= k; k <= N where N is known.
/// Throws: `gshard::error` when the program is bound, if k > N.
/// @see sort, argmax
constexpr sorted top_k(here x, int k, int dim = -1, bool largest = true) {
  builder& b = *x.owner;
  const int at = detail::dim_from(x, dim);
  if (!detail::check_along(x, at, "top_k")) return {b.nothing(), b.nothing()};
  const std::int64_t extent = b.known_extent(x.get().dims[at]);
  if (k < 1) b.fail_range("top_k", "k", k);
  else if (extent >= 0 && k > extent) b.fail_range("top_k", "k, extent of x", k, extent);
  if (b.failed()) return {b.nothing(), b.nothing()};
  return detail::emit_sorted(op::top_k, x, at, b.fixed_dim(k), k, largest);
}

}}  // namespace gshard::v0

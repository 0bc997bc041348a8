// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Sorts the elements along a dim, with their indices: sort and top_k.

#include <gshard/core/grad/differentiator.hpp>
#include <gshard/core/ir/attributes.hpp>
#include <gshard/core/ir/op.hpp>
#include <gshard/core/pass/decompose_cost.hpp>
#include <gshard/core/pass/decomposer.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/ops/along/line.hpp>

#include <cstdint>

namespace gshard { inline namespace v0 {

namespace op {
inline constexpr operation sort{.id = 17, .name = "sort", .keeps_sharding = true};
inline constexpr operation top_k{.id = 18, .name = "top_k", .lines = line_dim::attribute};
inline constexpr operation scatter_along{.id = 19, .name = "scatter_along"};
}  // namespace op

/// sort, top_k.
struct sort_attributes {
  std::int32_t count = 0;   ///< k of top_k, and 0 for its merge of blocks
  bool descending = false;  ///< the largest first
  bool nan_first = false;   ///< NaN also precedes the smallest element

  static constexpr void each(auto& all, auto f) { f("count", all.count), f("descending", all.descending), f("nan_first", all.nan_first); }
};

/// Elements in order, with their original indices.
struct sorted {
  symbol values;
  symbol ids;  // int32
};

namespace detail {

constexpr void sort_gradient(differentiator& d, const node& n);
inline constexpr operation_rules sort_rules{.of = op::sort, .gradient = sort_gradient};
constexpr void top_k_by_blocks(decomposer& d, const node& n, int at);
constexpr std::int64_t top_k_cost_by_blocks(const decompose_cost& cost);
inline constexpr operation_rules top_k_rules{
    .of = op::top_k, .gradient = sort_gradient, .by_blocks = top_k_by_blocks, .cost_by_blocks = top_k_cost_by_blocks};

/// op::sort, op::top_k.
constexpr sorted emit_sorted(const operation_rules& kind, symbol x, int at, int count_dim, std::int32_t k, bool largest,
                             bool nan_first = false) {
  builder& b = *x.owner;
  if (!check_along(x, at, name(kind.of))) return {b.nothing(), b.nothing()};
  sharding_rule rule;
  rule.in[0] = rule.out[0] = rule.out[1] = counting(x.rank());
  if (kind.of == op::sort) rule.block(at);
  dim_list dims = x.get().dims;
  dims.set(at, count_dim);
  b.add_node(b.use(kind), {x.id}, rule, {.dim = at, .own = sort_attributes{k, largest, nan_first}},
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

/// The gradients of the values, at their original indices.
constexpr void sort_gradient(differentiator& d, const node& n) {
  d.add(n.input(0), emit_scatter_along(d.out(n, 1), d.gradient(n), n.attr.dim, d.in(n, 0)));
}

/// The node that takes the best of the best elements of blocks: their numbers are operand 0, and their indices operand 1.
constexpr void merge_blocks(node& n, const sorted& blocks, int at) {
  n.inputs = 2;
  n.in[0] = blocks.values.id;
  n.in[1] = blocks.ids.id;
  n.rule.in[1] = n.rule.in[0];
  n.rule.block(n.rule.in[0][at]);
  auto order = own<sort_attributes>(n);
  order.count = 0;
  n.attr.own = order;
}
/// The best elements of every block, sharded as x.
constexpr sorted emit_best_of_blocks(decomposer& d, symbol x, int at, std::int32_t k, bool largest, bool nan_first = false) {
  builder& b = d.owner();
  const sharding layout = x.get().layout;
  const sorted best = emit_sorted(top_k_rules, x, at, b.blocks_dim(layout[at].mask(), k), k, largest, nan_first);
  b.program.nodes.back().attr.of_blocks = true;
  d.set_sharding(best.values, layout);
  d.set_sharding(best.ids, layout);
  return best;
}
/// The best elements of every block, then the best of these.
constexpr void top_k_by_blocks(decomposer& d, const node& n, int at) {
  const auto order = own<sort_attributes>(n);
  node merge = n;
  merge_blocks(merge, emit_best_of_blocks(d, d.in(n, 0), at, order.count, order.descending), at);
  d.append(merge);
}
/// An all_gather of the best elements of blocks, with their indices.
constexpr std::int64_t top_k_cost_by_blocks(const decompose_cost& cost) {
  const std::int64_t best = own<sort_attributes>(cost.of()).count * (size_of(cost.operand().type) + size_of(dtype::i32));
  return cost.at().start_bytes + cost.lines() * cost.other_blocks() * best + 2 * cost.moved(cost.result(), cost.with_whole_line());
}

}  // namespace detail

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
  return detail::emit_sorted(detail::sort_rules, x, at, x.get().dims[at], 0, descending);
}
/// sort<1>(x): the same with its numbers as template arguments, as on tensors outside of programs.
template <int Dim, bool Descending = false>
constexpr sorted sort(here x) {
  return sort(x, Dim, Descending);
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
  return detail::emit_sorted(detail::top_k_rules, x, at, b.fixed_dim(k), k, largest);
}
/// top_k<3, 1>(x): the same with its numbers as template arguments, as on tensors outside of programs.
template <int K, int Dim = -1, bool Largest = true>
constexpr sorted top_k(here x) {
  return top_k(x, K, Dim, Largest);
}

template <auto... Numbers, class... Given>
  requires(sizeof...(Numbers) == 0 ? !detail::call<1, symbol, int, bool>::fits<Given...>
                                   : sizeof...(Numbers) > 2 || !detail::are_numbers<int, Numbers...> || !detail::tensors<1>::fits<Given...>)
constexpr auto sort(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: sort(x, dim = -1, descending = false) takes a tensor of a program, a dim and a flag");
  return sorted{detail::refused(given...), detail::refused(given...)};
}
template <auto... Numbers, class... Given>
  requires(sizeof...(Numbers) == 0 ? !detail::call<2, symbol, int, int, bool>::fits<Given...>
                                   : sizeof...(Numbers) > 3 || !detail::are_numbers<int, Numbers...> || !detail::tensors<1>::fits<Given...>)
constexpr auto top_k(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: top_k(x, k, dim = -1, largest = true) takes a tensor of a program, a count, a dim and a flag");
  return sorted{detail::refused(given...), detail::refused(given...)};
}

}}  // namespace gshard::v0

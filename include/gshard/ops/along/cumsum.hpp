// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Running sums along a dim: cumsum.

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
inline constexpr operation cumsum{.id = 15, .name = "cumsum", .lines = line_dim::attribute};
inline constexpr operation block_sum{.id = 16, .name = "block_sum", .follows_result = true};
}  // namespace op

struct cumsum_attributes {
  bool exclusive = false;  ///< the sum at i lacks element i
  bool reverse = false;    ///< sums from the end

  static constexpr void each(auto& all, auto f) { f("exclusive", all.exclusive), f("reverse", all.reverse); }
};

namespace detail {

constexpr void cumsum_gradient(differentiator& d, const node& n);
constexpr void cumsum_by_blocks(decomposer& d, const node& n, int at);
constexpr std::int64_t cumsum_cost_by_blocks(const decompose_cost& cost);
inline constexpr operation_rules cumsum_rules{
    .of = op::cumsum, .gradient = cumsum_gradient, .by_blocks = cumsum_by_blocks, .cost_by_blocks = cumsum_cost_by_blocks};

/// op::cumsum. An optional second operand has one number for every block of the dim. It is added to the block.
constexpr symbol emit_cumsum(symbol x, int at, bool exclusive, bool reverse) {
  builder& b = *x.owner;
  if (!check_along(x, at, "cumsum")) return b.nothing();
  sharding_rule rule;
  rule.in[0] = rule.out[0] = counting(x.rank());
  return {&b, b.add_node(b.use(cumsum_rules), {x.id}, rule, {.dim = at, .own = cumsum_attributes{exclusive, reverse}},
                         {{x.get().dims, x.get().type}})};
}

/// The running sum from the other end.
constexpr void cumsum_gradient(differentiator& d, const node& n) {
  const auto a = own<cumsum_attributes>(n);
  d.add(n.input(0), emit_cumsum(d.gradient(n), n.attr.dim, a.exclusive, !a.reverse));
}

/// The sum of every block, then the running sum over blocks. The running sum within each block starts at it.
constexpr void cumsum_by_blocks(decomposer& d, const node& n, int at) {
  builder& b = d.owner();
  const symbol x = d.in(n, 0);
  const sharding layout = x.get().layout;
  sharding_rule rule;
  rule.in[0] = rule.in[1] = rule.out[0] = counting(x.rank());
  dim_list blocks = x.get().dims;
  blocks.set(at, b.blocks_dim(layout[at].mask(), 1));
  const symbol sums{&b, b.add_node(op::block_sum, {x.id}, rule, n.attr, {{blocks, x.get().type}})};
  d.set_sharding(sums, layout);
  const symbol before = d.set_sharding(emit_cumsum(sums, at, true, own<cumsum_attributes>(n).reverse), layout.without(layout[at].mask()));
  b.program.nodes.back().rule.block(at);
  const symbol y{&b, b.add_node(op::cumsum, {x.id, before.id}, rule, n.attr, {{x.get().dims, x.get().type}})};
  b.program.nodes.back().attr.of_blocks = true;
  d.replace_result_annotated(n, 0, d.set_sharding(y, layout));
}
/// An all_gather of the sums of blocks.
constexpr std::int64_t cumsum_cost_by_blocks(const decompose_cost& cost) {
  const value& x = cost.operand();
  return cost.at().start_bytes + cost.lines() * cost.other_blocks() * size_of(x.type) + cost.operands(x.layout) +
         cost.moved(cost.result(), x.layout);
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
/// cumsum<1>(x): the same with its numbers as template arguments, as on tensors outside of programs.
template <int Dim, bool Exclusive = false, bool Reverse = false>
constexpr symbol cumsum(here x) {
  return cumsum(x, Dim, Exclusive, Reverse);
}

GSHARD_TAKES_NUMBERS(cumsum, (detail::call<1, symbol, int, bool, bool>::fits<Given...>), 1, 3, int, (detail::tensors<1>::fits<Given...>),
                     "cumsum(x, dim = -1, exclusive = false, reverse = false) takes a tensor of a program, a dim and flags")

}}  // namespace gshard::v0

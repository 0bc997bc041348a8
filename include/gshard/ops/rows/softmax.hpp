// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Softmax over the last dim.

#include <gshard/core/grad/differentiator.hpp>
#include <gshard/core/ir/op.hpp>
#include <gshard/core/ir/reduction.hpp>
#include <gshard/core/pass/decompose_cost.hpp>
#include <gshard/core/pass/decomposer.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/ops/reduce/reduce.hpp>
#include <gshard/ops/rows/last_dim.hpp>
#include <gshard/ops/rows/row_blocks.hpp>

#include <array>

namespace gshard { inline namespace v0 {

namespace op {
inline constexpr operation softmax{.id = 6, .name = "softmax", .spreads = propagation::first, .lines = line_dim::last,
    .overwrites = 0};
inline constexpr operation softmax_grad{.id = 7, .name = "softmax_grad", .spreads = propagation::first, .lines = line_dim::last,
    .overwrites = 1};
}  // namespace op

namespace detail {

// Templates, so that only programs with a softmax pay for the functions of its maps.
template <class Used = void>
constexpr void softmax_gradient(differentiator& d, const node& n);
template <class Used = void>
constexpr void softmax_by_blocks(decomposer& d, const node& n, int at);
template <class Used = void>
constexpr void softmax_grad_by_blocks(decomposer& d, const node& n, int at);
template <class Used>
inline constexpr operation_rules softmax_rules{
    .of = op::softmax, .gradient = softmax_gradient<Used>, .by_blocks = softmax_by_blocks<Used>, .cost_by_blocks = cost_of_row_sums<2>};
template <class Used>
inline constexpr operation_rules softmax_grad_rules{
    .of = op::softmax_grad, .by_blocks = softmax_grad_by_blocks<Used>, .cost_by_blocks = cost_of_row_sums<1>};

template <class Used>
constexpr void softmax_gradient(differentiator& d, const node& n) {
  builder& b = d.owner();
  const symbol y = d.out(n), dy = d.gradient(n);
  sharding_rule rule = n.rule;
  rule.in[1] = rule.in[0];
  d.add(n.input(0),
        {&b, b.add_node(b.use(softmax_grad_rules<Used>), {y.id, dy.id}, rule, n.attr, {{y.get().dims, y.get().type}})});
}

inline constexpr auto softmax_exponential = [](auto v, auto top) { return exp(v - top); };
inline constexpr auto softmax_slope = [](auto v, auto g, auto sum) { return v * (g - sum); };

template <class Used>
constexpr void softmax_by_blocks(decomposer& d, const node& n, int /*at*/) {
  row_blocks r(d);
  const symbol x = d.in(n, 0);
  const symbol m = d.set_sharding_like(emit_reduce_as(op::reduce, x, reduction::max, r.all(x), r.rows(x), "softmax"), x, r.rows(x));
  const symbol e = r.map(undifferentiated<when_used<Used, softmax_exponential>, 2>, std::array{x, m});
  d.replace_result(n, 0, r.map(own_function<arithmetic::divide>, std::array{e, r.sum(e, r.rows(x))}));
}
template <class Used>
constexpr void softmax_grad_by_blocks(decomposer& d, const node& n, int /*at*/) {
  row_blocks r(d);
  const symbol y = d.in(n, 0), dy = d.in(n, 1);
  const symbol total = r.sum(r.map(own_function<arithmetic::multiply>, std::array{y, dy}), r.rows(y));
  d.replace_result(n, 0, r.map(undifferentiated<when_used<Used, softmax_slope>, 3>, std::array{y, dy, total}));
}

}  // namespace detail

/// softmax(x)[..., i] = exp(x_i) / sum_j exp(x_j) over the last dim.
/// Shapes: [..., N] -> the same.
/// Communicates: nothing, or, if the last dim is sharded, a maximum and a sum per row; a reshard of x if that is cheaper.
/// Compile time: that x has a dim; a real element type.
/// Throws: nothing.
/// @see logsumexp, cross_entropy
template <class Used = void>
constexpr symbol softmax(here x) {
  builder& b = *x.owner;
  if (!detail::check_rank(b, x, 1, "softmax")) return b.nothing();
  return {&b, b.add_node(b.use(detail::softmax_rules<Used>), {x.id}, detail::rows_rule(x.rank()), {}, {{x.get().dims, x.get().type}})};
}

GSHARD_TAKES(softmax, (detail::tensors<1>::fits<Given...>), "softmax(x) takes one tensor of a program")

}}  // namespace gshard::v0

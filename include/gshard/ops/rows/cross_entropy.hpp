// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The cross entropy of logits and labels.

#include <gshard/core/base/math.hpp>
#include <gshard/core/grad/differentiator.hpp>
#include <gshard/core/ir/attributes.hpp>
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
#include <cstdint>

namespace gshard { inline namespace v0 {

namespace op {
inline constexpr operation cross_entropy{.id = 10, .name = "cross_entropy", .lines = line_dim::last, .ids = 1};
inline constexpr operation cross_entropy_grad{.id = 11, .name = "cross_entropy_grad", .lines = line_dim::last,
    .overwrites = 0, .ids = 1};
inline constexpr operation block_cross_entropy{.id = 12, .name = "block_cross_entropy", .follows_result = true, .ids = 1};
}  // namespace op

struct cross_entropy_attributes {
  double smoothing = 0;

  static constexpr void each(auto& all, auto f) { f("smoothing", all.smoothing); }
};

namespace detail {

// Templates, so that only programs with a cross_entropy pay for the functions of its maps.
template <class Used = void>
constexpr void cross_entropy_gradient(differentiator& d, const node& n);
template <class Used = void>
constexpr void cross_entropy_by_blocks(decomposer& d, const node& n, int at);
template <class Used = void>
constexpr void cross_entropy_grad_by_blocks(decomposer& d, const node& n, int at);
template <class Used>
inline constexpr operation_rules cross_entropy_rules{.of = op::cross_entropy,
                                                     .gradient = cross_entropy_gradient<Used>,
                                                     .by_blocks = cross_entropy_by_blocks<Used>,
                                                     .cost_by_blocks = cost_of_row_sums<3>};
template <class Used>
inline constexpr operation_rules cross_entropy_grad_rules{
    .of = op::cross_entropy_grad, .by_blocks = cross_entropy_grad_by_blocks<Used>, .cost_by_blocks = cost_of_row_sums<2>};

template <class Used>
constexpr void cross_entropy_gradient(differentiator& d, const node& n) {
  builder& b = d.owner();
  const symbol dy = d.gradient(n);
  d.add(n.input(0), {&b, b.add_node(b.use(cross_entropy_grad_rules<Used>), {n.input(0), n.input(1), dy.id},
                                    rule_of_gradient(n, {0, 1}, {0}), n.attr, {{d.in(n, 0).get().dims, dy.get().type}})});
}

/// For every block of classes: log(sum exp), and its part of the target's logit. A dim of blocks replaces the classes.
struct loss_parts {
  symbol log_sum, target;
};
constexpr loss_parts emit_loss_parts(decomposer& d, const node& n) {
  builder& b = d.owner();
  const symbol x = d.in(n, 0);
  const short_list& classes = x.get().layout[x.rank() - 1];
  sharding_rule rule;
  rule.in[0] = rule.out[0] = rule.out[1] = counting(x.rank());
  rule.in[1] = counting(x.rank() - 1);
  dim_list blocks = x.get().dims;
  blocks.set(x.rank() - 1, b.blocks_dim(classes.mask(), 1));
  const dtype type = x.get().type;
  b.add_node(op::block_cross_entropy, {x.id, n.input(1)}, rule, n.attr, {{blocks, type}, {blocks, type}});
  const loss_parts parts{b.result_of_last(0), b.result_of_last(1)};
  d.set_sharding(parts.log_sum, x.get().layout);
  d.set_sharding(parts.target, x.get().layout);
  return parts;
}
inline constexpr auto cross_entropy_exponential = [](auto v, auto top) { return v == top ? decltype(v)(1) : exp(v - top); };
inline constexpr auto cross_entropy_log_sum = [](auto sum, auto top) { return log(sum) + top; };
/// log(sum exp) over the blocks of a row. The largest block contributes exactly 1, even if it is infinite.
template <class Used>
constexpr symbol log_sum_of_blocks(decomposer& d, symbol blocks) {
  row_blocks r(d);
  const short_list rows = r.rows(blocks);
  const symbol most = emit_reduce_as(op::reduce, blocks, reduction::max, r.all(blocks), rows, "cross_entropy");
  const symbol m = d.set_sharding_like(most, blocks, rows);
  const symbol total = r.sum(r.map(undifferentiated<when_used<Used, cross_entropy_exponential>, 2>, std::array{blocks, m}), rows);
  const short_list own = r.all(m);
  constexpr auto& log_sum = undifferentiated<when_used<Used, cross_entropy_log_sum>, 2>;
  return d.set_sharding_like(emit_map_of(log_sum, std::array{total, m}, std::array{own, own}, m), m, own);
}
/// log(sum exp) of every row of logits, and the target's logit. It depends on the labels, because rows without a label do not count. Made
/// for the loss or its gradient: for the one that the program states first.
template <class Used>
constexpr decomposer::shared_tensors log_sum_of(decomposer& d, const node& n) {
  const double smoothing = own<cross_entropy_attributes>(n).smoothing;
  if (const auto* const known = d.find_shared(op::cross_entropy, n.input(0), n.input(1), smoothing)) return *known;
  row_blocks r(d);
  const loss_parts parts = emit_loss_parts(d, n);
  const symbol target = r.sum(parts.target, r.rows(parts.target));  // first, so that it is completed together with the exponentials
  return d.share({op::cross_entropy, n.input(0), n.input(1), smoothing, {log_sum_of_blocks<Used>(d, parts.log_sum), target}});
}
template <class Used>
constexpr void cross_entropy_by_blocks(decomposer& d, const node& n, int /*at*/) {
  const auto sums = log_sum_of<Used>(d, n);
  const symbol log_sum = sums.made[0];
  const short_list own = counting(log_sum.rank());
  const std::array operands{log_sum, sums.made[1]};
  d.replace_result(n, 0, emit_map_of(own_function<arithmetic::subtract>, operands, std::array{own, own}, log_sum));
}
/// The gradient of a decomposed loss reuses the sums of the loss.
template <class Used>
constexpr void cross_entropy_grad_by_blocks(decomposer& d, const node& n, int /*at*/) {
  node g = n;
  g.in[g.inputs] = log_sum_of<Used>(d, n).made[0].id;
  g.rule.in[g.inputs++] = counting(d.in(n, 0).rank() - 1);
  d.append(g);
}

}  // namespace detail

/// cross_entropy(logits, labels)[...] = -sum_v q_v log softmax(logits)_v with the smoothed target distribution q = (1 - smoothing)
/// onehot(label) + smoothing / V. A label below 0 costs 0.
/// Shapes: logits [..., V], int32 labels [...] -> [...].
/// Communicates: nothing, or, if V is sharded, three numbers per row: maximum, sum of exponentials, logit of the target. Its gradient:
/// nothing.
/// Compile time: ranks, dims and element types.
/// Throws: `gshard::error` on all processes, if a label is V or more.
/// @see logsumexp
template <class Used = void>
constexpr symbol cross_entropy(here logits, symbol labels, double smoothing = 0) {
  builder& b = *logits.owner;
  if (!detail::check_rank(b, logits, 1, "cross_entropy") || !b.has(labels)) return b.nothing();
  if (labels.get().type != dtype::i32) {
    b.fail_type("cross_entropy", 1, labels.get().type, only(dtype::i32));
    return b.nothing();
  }
  dim_list rows = logits.get().dims;
  rows.pop_back();
  if (!b.same_extents(labels.get().dims, rows)) {
    b.fail(fault::dims_differ, "cross_entropy", {}, 1, 0);
    return b.nothing();
  }
  sharding_rule rule = detail::rows_rule(logits.rank());
  rule.in[1] = rule.out[0] = detail::counting(logits.rank() - 1);
  const attributes attr{.own = cross_entropy_attributes{smoothing}};
  return {&b, b.add_node(b.use(detail::cross_entropy_rules<Used>), {logits.id, labels.id}, rule, attr, {{rows, logits.get().type}})};
}

GSHARD_TAKES(cross_entropy, (detail::call<2, symbol, symbol, double>::fits<Given...>),
             "cross_entropy(logits, labels, smoothing = 0) takes two tensors of a program and a number")

}}  // namespace gshard::v0

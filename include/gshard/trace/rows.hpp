// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Operations along the last dim: softmax, layer_norm and cross_entropy.
//
// Every other dim may be sharded without communication. If the last dim is sharded, they communicate one to three numbers per row.

#include <gshard/trace/builder.hpp>

#include <cstdint>


namespace gshard { inline namespace v0 {

namespace detail {
constexpr sharding_rule rows_rule(int rank) {
  sharding_rule r;
  r.in[0] = r.out[0] = counting(rank);
  return r;
}
constexpr bool check_rank(builder& b, symbol x, int least, std::string_view what) {
  if (!require_real(b, what, {x})) return false;
  if (x.rank() < least) b.fail(fault::rank_mismatch, what, {}, least, x.rank());
  return !b.failed();
}
}  // namespace detail

/// softmax(x)[..., i] = exp(x_i) / sum_j exp(x_j) over the last dim.
/// Shapes: [..., N] -> the same.
/// Communicates: nothing, or, if the last dim is sharded, a maximum and a sum per row; a reshard of x if that is cheaper.
/// Compile time: that x has a dim; a real element type.
/// Throws: nothing.
/// @see logsumexp, cross_entropy
constexpr symbol softmax(here x) {
  builder& b = *x.owner;
  if (!detail::check_rank(b, x, 1, "softmax")) return b.nothing();
  return {&b, b.add_node(op::softmax, {x.id}, detail::rows_rule(x.rank()), {}, {{x.get().dims, x.get().type}})};
}

/// layer_norm(x, gamma, beta) = (x - mean) / sqrt(variance + epsilon) * gamma + beta over the last dim.
/// Shapes: x [..., N], gamma [N], beta [N] -> the shape of x.
/// Communicates: nothing, or, if the last dim is sharded, sums per row; a reshard of x if that is cheaper.
/// Compile time: ranks, dims and element types.
/// Throws: nothing.
/// @see softmax
constexpr symbol layer_norm(here x, symbol gamma, symbol beta, double epsilon = 1e-5) {
  builder& b = *x.owner;
  if (!detail::check_rank(b, x, 1, "layer_norm") || !detail::require_real(b, "layer_norm", {x, gamma, beta})) return b.nothing();
  const int last = x.rank() - 1;
  for (const symbol& s : {gamma, beta})
    if (s.rank() != 1 || !b.same_extent(s.get().dims[0], x.get().dims[last])) {
      b.fail(fault::dims_differ, "layer_norm", {}, s.id == beta.id ? 2 : 1, 0);
      return b.nothing();
    }
  sharding_rule rule = detail::rows_rule(x.rank());
  rule.in[1] = rule.in[2] = detail::counting(1, last);
  const attributes attr{.own = layer_norm_attributes{epsilon}};
  return {&b, b.add_node(op::layer_norm, {x.id, gamma.id, beta.id}, rule, attr, {{x.get().dims, x.get().type}})};
}

/// cross_entropy(logits, labels)[...] = -sum_v q_v log softmax(logits)_v with the smoothed target distribution q = (1 - smoothing)
/// onehot(label) + smoothing / V. A label below 0 costs 0.
/// Shapes: logits [..., V], int32 labels [...] -> [...].
/// Communicates: nothing, or, if V is sharded, three numbers per row: maximum, sum of exponentials, logit of the target. Its gradient:
/// nothing.
/// Compile time: ranks, dims and element types.
/// Throws: `gshard::error` on all processes, if a label is V or more.
/// @see logsumexp
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
  return {&b, b.add_node(op::cross_entropy, {logits.id, labels.id}, rule, attr, {{rows, logits.get().type}})};
}

}}  // namespace gshard::v0

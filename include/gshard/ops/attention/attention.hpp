// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Attention as one operation that never stores the matrix of all scores.

#include <gshard/core/grad/differentiator.hpp>
#include <gshard/core/ir/attributes.hpp>
#include <gshard/core/ir/op.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/iota.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/select.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace gshard { inline namespace v0 {

namespace op {
inline constexpr operation attention{.id = 13, .name = "attention", .fused_products = 2};
inline constexpr operation attention_grad{.id = 14, .name = "attention_grad", .fused_products = 5};
}  // namespace op

struct attention_attributes {
  bool causal = false;  ///< a query sees the keys up to its own index
  double dropout = 0;

  static constexpr void each(auto& all, auto f) { f("causal", all.causal), f("dropout", all.dropout); }
};

/// Options of `attention`. A query sees all keys by default. `mask` hides keys with mask 0, `causal` hides later keys.
struct attention_options {
  bool causal = false;
  /// [batch..., keys], real or int32: 1, or 0 at keys that no query sees, such as padding.
  symbol mask{};
  /// int32, a scalar or some of the batch dims: the position of the first query among the keys. It implies `causal`. Set it for queries
  /// that continue a sequence with cached keys.
  symbol position{};
  /// The rate of dropout of the attention weights.
  double dropout = 0;
};

/// Attention over some of the keys: the result, and log(sum exp(scores)) of each query, which merge_attention needs.
/// @see partial_attention, merge_attention
struct attention_part {
  symbol y, log_sum;
};

namespace detail {

constexpr void attention_gradient(differentiator& d, const node& n);
inline constexpr operation_rules attention_rules{.of = op::attention, .gradient = attention_gradient};

/// The log_sum of a query that sees no key.
inline constexpr float no_keys = -std::numeric_limits<float>::infinity();

/// For each key, the first query that sees it: [batch..., keys], int32.
constexpr symbol emit_seen_from(symbol k, const attention_options& o, std::string_view verb) {
  builder& b = *k.owner;
  const line_of_call kept(b);
  dim_list dims = k.get().dims;
  dims.pop_back();
  dims.pop_back();
  const bool causal = o.causal || o.position.id >= 0;
  symbol from = emit_iota(b, dims, dims.size() - 1);
  if (!causal) from = emit_constant(pointwise_constant<0>, from);
  if (o.position.id >= 0) {
    if (const dtype type = o.position.get().type; type != dtype::i32) b.fail_type(verb, ".position", type, only(dtype::i32));
    from = from - o.position;
  }
  if (o.mask.id >= 0 && !b.failed()) {
    b.require_dims(verb, ".mask", o.mask, dims);
    const symbol seen = o.mask.get().type == dtype::i32 ? o.mask : cast(o.mask, dtype::i32);
    from = select(seen, from, double(std::numeric_limits<std::int32_t>::max()));
  }
  return from;
}

/// op::attention. Results: y, with the dims of q; log_sum, without the last dim of q.
constexpr attention_part emit_attention(symbol q, symbol k, symbol v, const attention_options& o, std::string_view verb) {
  builder& b = *q.owner;
  const attention_part nothing{b.nothing(), b.nothing()};
  if (!require_real(b, verb, {q, k, v})) return nothing;
  const dim_list of_q = q.get().dims, of_k = k.get().dims;
  const int rank = of_k.size(), batch = rank - 3, repeats = of_q.size() - rank;
  if (rank < 3) b.fail(fault::rank_mismatch, verb, {}, 3, rank);
  else if (repeats != 0 && repeats != 1) b.fail(fault::rank_mismatch, verb, {}, rank, of_q.size());
  else if (!b.same_extents(v.get().dims, of_k)) b.fail(fault::dims_differ, verb, {}, 2, 0);
  else if (!(o.dropout >= 0 && o.dropout < 1)) b.fail_range(verb, ".dropout");
  if (b.failed()) return nothing;
  for (int d = 0; d < rank; ++d)
    if (d != batch && !b.same_extent(of_q[d < rank - 1 ? d : of_q.size() - 1], of_k[d])) b.fail(fault::dims_differ, verb, {}, 1, d);
  if ((o.mask.id >= 0 && !b.has(o.mask)) || (o.position.id >= 0 && !b.has(o.position)) || b.failed()) return nothing;

  // Factors: the dims of q in order, then the keys.
  sharding_rule rule;
  const int keys = of_q.size();
  rule.in[0] = rule.out[0] = counting(keys);
  rule.out[1] = counting(keys - 1);
  rule.in[1] = counting(batch);
  for (const int f : {keys, batch + 1, keys - 1}) rule.in[1].push_back(f);
  rule.in[2] = rule.in[1];
  rule.in[3] = rule.in[1].prefix(batch + 1);
  rule.block(keys);
  rule.block(keys - 1);
  const bool masked = o.mask.id >= 0 || o.position.id >= 0;
  const std::array<std::int32_t, 4> in{q.id, k.id, v.id, masked ? emit_seen_from(k, o, verb).id : -1};
  if (b.failed()) return nothing;
  dim_list row = of_q;
  row.pop_back();
  const std::int32_t key = o.dropout > 0 ? b.next_random_key() : 0;
  const attention_attributes own{o.causal && !masked, o.dropout};
  b.add_node(b.use(attention_rules), list_view(in.data(), masked ? 4u : 3u), rule, {.key = key, .own = own},
             {{of_q, q.get().type}, {row, q.get().type}});
  return {b.result_of_last(0), b.result_of_last(1)};
}

/// op::attention_grad. Results: the gradients of q, k and v. `dlog_sum` may be empty.
constexpr void emit_attention_grad(const node& n, symbol y, symbol dy, symbol dlog_sum) {
  builder& b = *y.owner;
  const symbol both[2]{y, dy};
  const short_list factors[2]{n.rule.out[0], n.rule.out[0]};
  symbol delta = emit_einsum(b, list_view(both, 2), list_view(factors, 2), n.rule.out[1]);
  if (dlog_sum.id >= 0) delta = delta - dlog_sum;
  if (b.failed()) return;
  sharding_rule rule = n.rule;
  rule.in[3] = rule.in[4] = n.rule.out[1];
  rule.in[5] = n.rule.out[0];
  rule.in[6] = n.rule.in[3];
  rule.set_results({n.rule.in[0], n.rule.in[1], n.rule.in[2]});
  const std::array<std::int32_t, 7> in{n.input(0), n.input(1), n.input(2), n.output(1), delta.id, dy.id, n.inputs > 3 ? n.input(3) : -1};
  const value &q = b.program.at(in[0]), &k = b.program.at(in[1]);
  b.add_node(op::attention_grad, list_view(in.data(), n.inputs > 3 ? 7u : 6u), rule, n.attr,
             {{q.dims, q.type}, {k.dims, k.type}, {k.dims, k.type}});
}

constexpr void attention_gradient(differentiator& d, const node& n) {
  builder& b = d.owner();
  const symbol dy = d.gradient(n);
  emit_attention_grad(n, d.out(n), dy, d.gradient_so_far(n.output(1)));
  if (b.failed()) return;
  const std::array parts{b.result_of_last(0), b.result_of_last(1), b.result_of_last(2)};
  for (int i = 0; i < 3; ++i)
    if (d.wants(n, i)) d.add(n.input(i), parts[std::size_t(i)]);
}

/// log(exp(x) + exp(y)): the log_sum of two parts.
inline constexpr auto merged_log_sum = [](auto x, auto y) {
  const auto top = x < y ? y : x;
  return x == no_keys && y == no_keys ? top : top + log(exp(x - top) + exp(y - top));
};
/// The weight of a part, by the log_sum of both parts. It does not use the merged log_sum: the weights of both parts must add up to 1 even
/// if that rounds to the log_sum of one part.
inline constexpr auto share_of_part = [](auto part, auto other) {
  const auto top = part < other ? other : part;
  const auto own = exp(part - top), both = own + exp(other - top);
  return part == no_keys && other == no_keys ? decltype(own)(1) : own / both;
};
/// 1 or 2: the only part with keys. 0: both or neither have keys. The result of a part without keys may be NaN.
inline constexpr auto only_part_with_keys = [](auto x, auto y) {
  using number = decltype(x);
  if ((x == no_keys) == (y == no_keys)) return number(0);
  return number(y == no_keys ? 1 : 2);
};
/// x s + y t, or one of the products if only one part has keys.
inline constexpr auto weighted_parts = [](auto x, auto y, auto s, auto t, auto alone) {
  return alone == 1 ? x * s : alone == 2 ? y * t : x * s + y * t;
};

}  // namespace detail

/// attention(q, k, v, options) = softmax(q k^T / sqrt(D)) v for every head, over the keys that a query sees. Scores are computed in blocks
/// of queries and keys, so memory is linear in the number of both. The gradient recomputes them. A query that sees no key has the result 0.
/// A NaN in a key or value that a query does not see reaches neither its result nor its gradient.
/// Grouped queries: if q has one more dim R, its R heads [H,R] share a head of k and v.
/// Shapes: q [batch..., Q, H, D] or [batch..., Q, H, R, D]; k and v [batch..., K, H, D] -> the shape of q.
/// Communicates: nothing, if only batch dims, H or Q are sharded, in all operands alike. Sharded K and D are gathered. In the gradient, dk
/// and dv are partial sums over the axes that shard Q or R.
/// Compile time: ranks, dims and element types.
/// Throws: nothing.
/// @see attention_options, nn::attention, nn::ring_attention
constexpr symbol attention(here q, symbol k, symbol v, attention_options options = {}) {
  return detail::emit_attention(q, k, v, options, "attention").y;
}

/// partial_attention(q, k, v, options): attention over some of the keys of a longer sequence, with the log_sum that `merge_attention`
/// needs.
/// Shapes: as attention; log_sum lacks D.
/// Communicates: as attention.
/// Compile time: as attention.
/// Throws: nothing.
/// @see merge_attention, nn::ring_attention
constexpr attention_part partial_attention(here q, symbol k, symbol v, attention_options options = {}) {
  return detail::emit_attention(q, k, v, options, "partial_attention");
}

/// merge_attention(a, b): the attention of the same queries over the keys of both parts. A part with log_sum -infinity adds nothing: the
/// query sees none of its keys.
/// Shapes: two parts of equal shapes -> the same.
/// Communicates: nothing if the parts have one sharding.
/// Compile time: dims.
/// Throws: nothing.
/// @see partial_attention
template <class Used = void>
constexpr attention_part merge_attention(const attention_part& a, const attention_part& b) {
  builder& program = *a.y.owner;
  const line_of_call kept(program);
  if (!program.failed() && !(program.same_extents(a.y.get().dims, b.y.get().dims) &&
                             program.same_extents(a.log_sum.get().dims, b.log_sum.get().dims)))
    program.fail(fault::dims_differ, "merge_attention", {}, 1, 0);
  if (program.failed()) return {program.nothing(), program.nothing()};
  const symbol log_sum = map<when_used<Used, detail::merged_log_sum>>(a.log_sum, b.log_sum);
  const symbol of_a = map<when_used<Used, detail::share_of_part>>(a.log_sum, b.log_sum);
  const symbol of_b = map<when_used<Used, detail::share_of_part>>(b.log_sum, a.log_sum);
  const symbol only = map<when_used<Used, detail::only_part_with_keys>>(a.log_sum, b.log_sum);
  const short_list all = detail::counting(a.y.rank()), rows = detail::counting(a.log_sum.rank());
  return {detail::emit_map_of(pointwise_of<when_used<Used, detail::weighted_parts>, 5>, std::array{a.y, b.y, of_a, of_b, only},
                              std::array{all, all, rows, rows, rows}, a.y),
          log_sum};
}

GSHARD_TAKES(attention, (detail::call<3, symbol, symbol, symbol, attention_options>::fits<Given...>),
             "attention(q, k, v, options = {}) takes three tensors of a program and attention_options")

}}  // namespace gshard::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Routes tokens to experts and back by index: the dispatch, combine and one-hot nodes of a mixture of experts.
//
// All nodes here number their factors in the same way.

#include <gshard/core/base/list_view.hpp>
#include <gshard/core/grad/differentiator.hpp>
#include <gshard/core/ir/attributes.hpp>
#include <gshard/core/ir/op.hpp>
#include <gshard/core/trace/builder.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace gshard { inline namespace v0 {

namespace op {
inline constexpr operation expert_rows{.id = 45, .name = "expert_rows", .routes = true};
inline constexpr operation one_hot{.id = 48, .name = "one_hot", .routes = true};
inline constexpr operation one_hot_grad{.id = 49, .name = "one_hot_grad", .routes = true};
inline constexpr operation dispatch{.id = 50, .name = "dispatch", .routes = true, .slot_factor = 4};
inline constexpr operation combine{.id = 51, .name = "combine", .routes = true};
inline constexpr operation combine_weight_grad{.id = 52, .name = "combine_weight_grad", .routes = true};
}  // namespace op

/// The tokens that use their second expert. random: tokens with 2 * g2 / (g1 + g2) > U(0, 1), as in Algorithm 1 of arXiv 2006.16668.
/// above_threshold: tokens with g2 / (g1 + g2) > threshold. sampled: all, but the second expert is drawn in proportion to the other gates.
/// A second choice that is not used still takes a slot.
enum class second_expert : std::uint8_t { random, always, above_threshold, sampled };

struct gating_attributes {
  std::int32_t k = 0;
  std::uint32_t operands = 0;  ///< a mask of the optional operands. @see gating_operand
  second_expert second = second_expert::random;
  bool by_experts = false;        ///< experts choose tokens
  bool gates_as_weights = false;  ///< weights are the gates, not divided by their sum
  double threshold = 0;           ///< of second choices

  static constexpr void each(auto& all, auto f) {
    f("k", all.k), f("operands", all.operands), f("second", all.second), f("by_experts", all.by_experts);
    f("gates_as_weights", all.gates_as_weights), f("threshold", all.threshold);
  }
};

namespace detail {

namespace route {
inline constexpr int group = 0, token = 1, choice = 2, expert = 3, place = 4, model = 5, expert_group = 6, hidden = 7;
static_assert(op::dispatch.slot_factor == place);

constexpr short_list factors(std::initializer_list<int> f) {
  short_list l;
  for (int i : f) l.push_back(i);
  return l;
}
inline constexpr short_list chosen = factors({group, token, choice});
inline constexpr short_list tokens = factors({group, token, model});
/// The factors of the slots of tokens with these factors.
constexpr short_list slots_of(const short_list& of_tokens) {
  short_list l;
  for (int i = 0; i < of_tokens.size(); ++i) l.push_back(of_tokens[i] == model ? choice : of_tokens[i]);
  return l;
}
inline constexpr short_list mask = factors({group, token, expert, place});
/// The optional operands of op::top_k_gating, after the gates, in this order.
enum class gating_input : std::uint8_t { padding, scores, importance };
/// The number of an optional operand of op::top_k_gating, or -1 if the node lacks it. `before`: the number of operands before the optional
/// ones.
constexpr int gating_operand(const gating_attributes& a, gating_input which, int before = 1) {
  if (!((a.operands >> int(which)) & 1u)) return -1;
  int at = before;
  for (int i = 0; i < int(which); ++i) at += int((a.operands >> i) & 1u);
  return at;
}

constexpr sharding_rule base() {
  sharding_rule r;
  r.block(choice);
  r.block(place);
  return r;
}

inline constexpr short_list group_rows = factors({expert_group, group, token, model});
inline constexpr short_list group_experts = factors({expert_group, expert, group, place, model});
// [N,G,R,M] for dispatch and combine: expert groups have the factor of experts.
inline constexpr short_list rows_by_group = factors({expert, group, place, model});

/// The rule of op::expert_group_slots, whose operands are slots and weights.
constexpr sharding_rule expert_group_slots() {
  sharding_rule r = base();
  r.block(token);
  r.block(expert_group);
  r.set_operands({chosen, chosen});
  const short_list of_rows = factors({expert_group, group, place, choice});
  r.set_results({factors({group, token, expert_group}), of_rows, of_rows, factors({group})});
  return r;
}

constexpr dim_list dims(std::initializer_list<int> list) {
  dim_list l;
  for (int d : list) l.push_back(d);
  return l;
}
}  // namespace route

constexpr void one_hot_gradient(differentiator& d, const node& n);
constexpr void dispatch_gradient(differentiator& d, const node& n);
constexpr void combine_gradient(differentiator& d, const node& n);
constexpr symbol einsum_with_one_hot(list_view<symbol> operands, list_view<short_list> factors, const short_list& output,
                                     const dim_list& dims);
constexpr std::int32_t counts_of_dispatched_rows(const graph& g, const node& n);
inline constexpr operation_rules one_hot_rules{.of = op::one_hot, .gradient = one_hot_gradient, .einsum_with = einsum_with_one_hot};
inline constexpr operation_rules dispatch_rules{.of = op::dispatch, .gradient = dispatch_gradient, .row_counts = counts_of_dispatched_rows};
inline constexpr operation_rules combine_rules{.of = op::combine, .gradient = combine_gradient};

/// The parts of a one-hot tensor [G,S,E,C]: slot [G,S,K] = e * C + c or -1, and optionally a weight for each slot.
struct one_hot_parts {
  symbol slot;
  symbol weight;  // empty: ones
  bool found = false;
};

constexpr one_hot_parts one_hot_of(symbol s) {
  const std::int32_t producer = s.get().producer;
  if (producer < 0) return {};
  const node& n = s.owner->program.nodes[std::size_t(producer)];
  if (n.kind != op::one_hot) return {};
  return {{s.owner, n.input(0)}, {s.owner, n.inputs > 1 ? n.input(1) : -1}, true};
}

/// op::one_hot: out[g,s,e,c] = weight[g,s,k] where slot[g,s,k] = e * C + c, else 0.
constexpr symbol emit_one_hot(symbol slot, symbol weight, int expert_dim, int place_dim, dtype type) {
  builder& b = *slot.owner;
  if (b.failed()) return b.nothing();
  const dim_list& s = slot.get().dims;
  dim_list dims;
  for (int d : {s[0], s[1], expert_dim, place_dim}) dims.push_back(d);
  sharding_rule rule = route::base();
  rule.in[0] = rule.in[1] = route::chosen;
  rule.out[0] = route::mask;
  const std::array<std::int32_t, 2> in{slot.id, weight.id};
  return {&b, b.add_node(b.use(one_hot_rules), list_view(in.data(), weight.id < 0 ? 1u : 2u), rule, {}, {{dims, type}})};
}

/// op::dispatch: out[e,g,c,m] (in any order with m last) = weight[g,s,k] * x[g,s,m] where slot[g,s,k] = e * C + c. `from` and `out`: the
/// factors of x and of the result. Both may have a factor route::expert_group, first in x: then each expert group has its own slots.
/// If an axis shards experts, every device fills the buffers of its own experts.
constexpr symbol emit_dispatch(symbol slot, symbol weight, symbol x, const short_list& from, const short_list& out, const dim_list& dims) {
  builder& b = *x.owner;
  sharding_rule rule = route::base();
  rule.in[0] = from;
  rule.in[1] = rule.in[2] = route::slots_of(from);
  rule.out[0] = out;
  const std::array<std::int32_t, 3> in{x.id, slot.id, weight.id};
  return {&b, b.add_node(b.use(dispatch_rules), list_view(in.data(), weight.id < 0 ? 2u : 3u), rule, {}, {{dims, x.get().type}})};
}

/// op::combine: y[g,s,m] = sum over k of weight[g,s,k] * h[e,g,c,m] at slot[g,s,k] = e * C + c. `from` and `out`: the factors of h and of
/// the result.
constexpr symbol emit_combine(symbol slot, symbol weight, symbol h, const short_list& from, const short_list& out, const dim_list& dims) {
  builder& b = *h.owner;
  sharding_rule rule = route::base();
  rule.in[0] = from;
  rule.in[1] = rule.in[2] = route::slots_of(out);
  rule.out[0] = out;
  const std::array<std::int32_t, 3> in{h.id, slot.id, weight.id};
  return {&b, b.add_node(b.use(combine_rules), list_view(in.data(), weight.id < 0 ? 2u : 3u), rule, {}, {{dims, h.get().type}})};
}

/// The paper's dispatch and combine einsums, "GSEC,GSM->EGCM" and "GSEC,GECM->GSM", as index operations. Their first operand is one-hot.
/// Empty if the einsum is neither.
constexpr symbol einsum_with_one_hot(list_view<symbol> operands, list_view<short_list> factors, const short_list& output,
                                     const dim_list& dims) {
  builder& b = *operands[0].owner;
  if (!b.options.sparse_one_hot || operands.size() != 2 || factors[0].size() != 4) return b.nothing();
  const one_hot_parts hot = one_hot_of(operands[0]);
  if (!hot.found) return b.nothing();
  const short_list& mask = factors[0];  // g, s, e, c
  const auto as_route = [&](const short_list& list, int model, short_list& out) {
    for (int i = 0; i < list.size(); ++i) {
      const int at = mask.find(list[i]);
      if (at < 0 && list[i] != model) return false;
      constexpr std::array<int, 4> roles{route::group, route::token, route::expert, route::place};
      out.push_back(at < 0 ? route::model : roles[std::size_t(at)]);
    }
    return true;
  };
  const short_list& dense = factors[1];
  if (dense.empty() || output.empty()) return b.nothing();
  const int model = dense.back();
  short_list from, to;
  if (mask.contains(model) || output.back() != model || !as_route(dense, model, from) || !as_route(output, model, to))
    return b.nothing();
  symbol made = b.nothing();
  if (from == route::tokens && to.size() == 4 && !to.contains(route::token))
    made = emit_dispatch(hot.slot, hot.weight, operands[1], from, to, dims);
  else if (to == route::tokens && from.size() == 4 && !from.contains(route::token))
    made = emit_combine(hot.slot, hot.weight, operands[1], from, to, dims);
  if (made.id >= 0) b.bypasses.push_back({made.id, operands[0].id, 0, route::mask, op::einsum});
  return made;
}

/// op::combine_weight_grad: dweight[g,s,k] = <h[e,g,c,:], dy[g,s,:]> at slot[g,s,k] = e * C + c. `from` and `out`: the factors of h and dy.
constexpr symbol emit_combine_weight_grad(symbol slot, symbol h, const short_list& from, symbol dy, const short_list& out) {
  builder& b = *h.owner;
  sharding_rule rule = route::base();
  rule.in[0] = from;
  rule.in[1] = rule.out[0] = route::slots_of(out);
  rule.in[2] = out;
  return {&b, b.add_node(op::combine_weight_grad, {h.id, slot.id, dy.id}, rule, {}, {{slot.get().dims, h.get().type}})};
}

/// op::one_hot_grad: dweight[g,s,k] = d[g,s,e,c] at slot[g,s,k] = e * C + c.
constexpr symbol emit_one_hot_grad(symbol slot, symbol d) {
  builder& b = *d.owner;
  sharding_rule rule = route::base();
  rule.in[0] = route::mask;
  rule.in[1] = route::chosen;
  rule.out[0] = route::chosen;
  return {&b, b.add_node(op::one_hot_grad, {d.id, slot.id}, rule, {}, {{slot.get().dims, d.get().type}})};
}

constexpr void one_hot_gradient(differentiator& d, const node& n) {
  if (n.inputs > 1 && d.wants(n, 1)) d.add(n.input(1), emit_one_hot_grad(d.in(n, 0), d.gradient(n)));
}
constexpr void dispatch_gradient(differentiator& d, const node& n) {
  const short_list &from = n.rule.in[0], &to = n.rule.out[0];
  const symbol slot = d.in(n, 1), weight = n.inputs > 2 ? d.in(n, 2) : d.owner().nothing();
  if (d.wants(n, 0)) d.add(n.input(0), emit_combine(slot, weight, d.gradient(n), to, from, d.in(n, 0).get().dims));
  if (n.inputs > 2 && d.wants(n, 2)) d.add(n.input(2), emit_combine_weight_grad(slot, d.gradient(n), to, d.in(n, 0), from));
}
constexpr void combine_gradient(differentiator& d, const node& n) {
  const short_list &from = n.rule.in[0], &to = n.rule.out[0];
  const symbol slot = d.in(n, 1), weight = n.inputs > 2 ? d.in(n, 2) : d.owner().nothing();
  if (d.wants(n, 0)) d.add(n.input(0), emit_dispatch(slot, weight, d.gradient(n), to, from, d.in(n, 0).get().dims));
  if (n.inputs > 2 && d.wants(n, 2)) d.add(n.input(2), emit_combine_weight_grad(slot, d.in(n, 0), from, d.gradient(n), to));
}

/// The counts of the expert_rows node that made an operand, or -1.
constexpr std::int32_t counts_of_expert_rows(const graph& g, std::int32_t operand) {
  const std::int32_t maker = g.at(without_annotations(g, operand)).producer;
  return maker >= 0 && g.nodes[std::size_t(maker)].kind == op::expert_rows ? g.nodes[std::size_t(maker)].out[1] : -1;
}
constexpr std::int32_t counts_of_dispatched_rows(const graph& g, const node& n) {
  return n.rule.out[0].same(route::rows_by_group) ? counts_of_expert_rows(g, n.in[1]) : -1;
}

}  // namespace detail

}}  // namespace gshard::v0

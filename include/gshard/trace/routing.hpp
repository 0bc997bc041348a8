// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Routes tokens to experts and back by index: the dispatch, combine and one-hot nodes of a mixture of experts.
//
// All nodes here number their factors in the same way.

#include <gshard/base/list_view.hpp>
#include <gshard/trace/builder.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace gshard { inline namespace v0 { namespace detail {

namespace route {
inline constexpr int group = 0, token = 1, choice = 2, expert = 3, place = 4, model = 5, expert_group = 6, hidden = 7;

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

// The operands and results of grouped products, in which an expert group has experts of its own.
inline constexpr short_list product_rows = factors({expert_group, group, place, model});
inline constexpr short_list product_results = factors({expert_group, group, place, hidden});
inline constexpr short_list matrices = factors({expert_group, expert, model, hidden});
inline constexpr short_list transposed_matrices = factors({expert_group, expert, hidden, model});
inline constexpr short_list row_counts = factors({expert_group, group, expert});

/// The common part of the rules of grouped products: a device has all rows and all experts of its groups.
constexpr sharding_rule grouped() {
  sharding_rule r = base();
  r.block(expert);
  return r;
}

/// The rule of op::expert_rows, whose operand are slots.
constexpr sharding_rule expert_rows() {
  sharding_rule r = base();
  for (const int f : {token, expert, expert_group}) r.block(f);
  r.in[0] = chosen;
  r.set_results({chosen, row_counts, factors({group})});
  return r;
}
constexpr dim_list dims(std::initializer_list<int> list) {
  dim_list l;
  for (int d : list) l.push_back(d);
  return l;
}
}  // namespace route

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
  return {&b, b.add_node(op::one_hot, list_view(in.data(), weight.id < 0 ? 1u : 2u), rule, {}, {{dims, type}})};
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
  return {&b, b.add_node(op::dispatch, list_view(in.data(), weight.id < 0 ? 2u : 3u), rule, {}, {{dims, x.get().type}})};
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
  return {&b, b.add_node(op::combine, list_view(in.data(), weight.id < 0 ? 2u : 3u), rule, {}, {{dims, h.get().type}})};
}

/// op::grouped_product: y[n,g,r,f] = sum over m of x[n,g,r,m] * w[n,e,m,f] for the expert e of row r, zero in rows of no expert. count
/// [n,g,e]: the number of rows of each expert. Rows are sorted by expert. `transposed`: w is [n,e,f,m].
constexpr symbol emit_grouped_product(symbol x, symbol w, symbol count, bool transposed, bool rounds) {
  builder& b = *x.owner;
  if (b.failed()) return b.nothing();
  dim_list dims = x.get().dims;
  dims.set(3, w.get().dims[transposed ? 2 : 3]);
  sharding_rule rule = route::grouped();
  const short_list &matrices = transposed ? route::transposed_matrices : route::matrices;
  rule.set_operands({route::product_rows, matrices, route::row_counts});
  rule.out[0] = route::product_results;
  return {&b, b.add_node(op::grouped_product, {x.id, w.id, count.id}, rule, {.rounds_to_bf16 = rounds}, {{dims, x.get().type}})};
}

}}}  // namespace gshard::v0::detail

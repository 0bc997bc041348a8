// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Routes tokens to groups of experts, and within each group to experts. A token is sent once to a group, however many of its experts are
// there. If a group's experts are on one node, this removes duplicates from the traffic between nodes.

#include <gshard/base/list_view.hpp>
#include <gshard/trace/builder.hpp>
#include <gshard/trace/gating.hpp>
#include <gshard/trace/routing.hpp>

#include <array>
#include <cstdint>

namespace gshard { inline namespace v0 {

/// The expected number of expert groups that a token is sent to, if it chooses k of E experts uniformly: n (1 - C(E - E/n, k) / C(E, k)),
/// where n groups have E/n experts each.
constexpr double expected_expert_groups(int experts, int groups, int k) {
  const int others = experts - experts / groups;  // experts of other groups
  double none_here = 1;
  for (int i = 0; i < k; ++i) none_here *= i < others ? double(others - i) / double(experts - i) : 0;
  return groups * (1 - none_here);
}

/// How the tokens of a gating reach N expert groups. Group n has the experts [n * E/N, (n + 1) * E/N). The numbers of groups and of rows are
/// settings of the model. They do not depend on the devices.
struct expert_group_routing {
  symbol row;       ///< [G,S,N]: n * R + r if row r of group n holds the token, else -1
  symbol slot;      ///< [N,G,R,K]: of each row, the slots e * C + c of its experts, numbered within the group, then -1
  symbol weight;    ///< [N,G,R,K]: their weights
  symbol overflow;  ///< [G] choices refused because the group had no row left
  int group_dim = 0, row_dim = 0, expert_dim = 0, place_dim = 0;  // the dims N, R, E/N, C
};

namespace detail {
namespace route {
inline constexpr short_list group_rows = factors({expert_group, group, token, model});
inline constexpr short_list group_experts = factors({expert_group, expert, group, place, model});
inline constexpr short_list row_buffers = factors({expert, group, place, model});  // an expert group is the destination of a token

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

/// op::expert_group_slots_grad: dweight[g,s,k] from the gradient of the weights of rows.
constexpr symbol emit_expert_group_slots_grad(symbol slot, symbol row, symbol dweight, const attributes& attr) {
  builder& b = *dweight.owner;
  const sharding_rule forward = route::expert_group_slots();
  sharding_rule rule;
  rule.blocked = forward.blocked;
  rule.set_operands({forward.in[0], forward.out[0], forward.out[2]});
  rule.out[0] = forward.in[1];
  return {&b, b.add_node(op::expert_group_slots_grad, {slot.id, row.id, dweight.id}, rule, attr, {{slot.get().dims, dweight.get().type}})};
}
}  // namespace detail

/// group_experts(gating, N, rows): the routing of a gating by N expert groups. A group has a row for R tokens of each token group, in order.
/// With rows = capacity{N}, the default, R = S, and no choice is lost. `expected_expert_groups` gives the least useful factor under uniform
/// routing. If a token gets no row, its choices in that group are dropped, and their slots stay empty. The others keep slot and weight. So
/// each expert gets the same tokens in the same slots as without groups.
/// Shapes: slots and weights [G,S,K] of the gating -> see `expert_group_routing`, R = ceil(factor * S / N), at most S.
/// Communicates: nothing. Only G may be sharded: other dims are replicated first.
/// Compile time: that `gating` is the result of top_k_gating or top2_gating; that N is from 1 to E, if E is known.
/// Throws: nothing.
/// @see dispatch_to_groups, combine_from_groups, nn::moe
constexpr expert_group_routing group_experts(const gating_result& gating, int groups, capacity rows = {0}) {
  builder& b = *gating.combine.owner;
  expert_group_routing r{b.nothing(), b.nothing(), b.nothing(), b.nothing()};
  if (b.failed()) return r;
  const detail::one_hot_parts choices = detail::one_hot_of(gating.combine);
  if (!choices.found || choices.weight.id < 0) b.fail(fault::wrong_type, "group_experts");
  if (b.failed()) return r;
  const dim_list combine = gating.combine.get().dims, slots = choices.slot.get().dims;
  const std::int64_t experts = b.known_extent(combine[2]);
  if (groups < 1 || (experts >= 0 && groups > experts)) {
    b.fail(fault::bad_range, "group_experts", {}, groups, int(experts));
    return r;
  }
  const int G = slots[0], S = slots[1], K = slots[2];
  const double factor = rows.factor > 0 && rows.factor < groups ? rows.factor : groups;
  r.group_dim = b.fixed_dim(groups);
  r.row_dim = factor == groups ? S : b.ratio_dim(factor, S, r.group_dim);
  r.expert_dim = b.ratio_dim(1, combine[2], r.group_dim);
  r.place_dim = combine[3];
  const dtype type = choices.weight.get().type;
  const dim_list of_rows = detail::route::dims({r.group_dim, G, r.row_dim, K});
  b.add_node(op::expert_group_slots, {choices.slot.id, choices.weight.id}, detail::route::expert_group_slots(),
             {.dims = detail::route::dims({r.expert_dim, r.place_dim})},
             {{detail::route::dims({G, S, r.group_dim}), dtype::i32}, {of_rows, dtype::i32}, {of_rows, type}, {detail::route::dims({G}), type}});
  r.row = b.result_of_last(0);
  r.slot = b.result_of_last(1);
  r.weight = b.result_of_last(2);
  r.overflow = b.result_of_last(3);
  return r;
}

/// dispatch_to_groups(routing, x): the inputs of all experts. Each token goes to a row of each of its groups, and from there to experts.
/// Shapes: x [G,S,M] -> [N,E/N,G,C,M], zero in empty slots.
/// Communicates: if G is sharded over the axes that shard N and E/N, one all_to_all of the rows over the axis of N, and one of the slots
/// over the axis of E/N.
/// Compile time: ranks, dims and element types.
/// Throws: nothing.
/// @see group_experts, combine_from_groups
constexpr symbol dispatch_to_groups(const expert_group_routing& r, here x) {
  builder& b = *x.owner;
  if (!detail::require_elements(b, op::dispatch, "dispatch_to_groups", {x, r.weight})) return b.nothing();
  const dim_list d = x.get().dims;
  if (d.size() != 3) b.fail(fault::rank_mismatch, "dispatch_to_groups", {}, 3, d.size());
  else if (const dim_list& row = r.row.get().dims; d[0] != row[0] || d[1] != row[1]) b.fail(fault::dims_differ, "dispatch_to_groups");
  if (b.failed()) return b.nothing();
  const symbol rows = detail::emit_dispatch(r.row, b.nothing(), x, detail::route::tokens, detail::route::row_buffers,
                                            detail::route::dims({r.group_dim, d[0], r.row_dim, d[2]}));
  return detail::emit_dispatch(r.slot, b.nothing(), rows, detail::route::group_rows, detail::route::group_experts,
                               detail::route::dims({r.group_dim, r.expert_dim, d[0], r.place_dim, d[2]}));
}

/// combine_from_groups(routing, h): the weighted sums of the results of each token's experts: first within each group, in the order of its
/// choices, then over the groups, in their order. So bits do not depend on the devices that hold experts whole; they may differ from the
/// sum without groups.
/// Shapes: h [N,E/N,G,C,M] -> [G,S,M], zero where a token has no expert.
/// Communicates: the way back of dispatch_to_groups: one all_to_all over the axis of E/N, and one of the rows over the axis of N.
/// Compile time: ranks, dims and element types.
/// Throws: nothing.
/// @see group_experts, dispatch_to_groups
constexpr symbol combine_from_groups(const expert_group_routing& r, here h) {
  builder& b = *h.owner;
  if (!detail::require_elements(b, op::combine, "combine_from_groups", {h, r.weight})) return b.nothing();
  const dim_list d = h.get().dims, row = r.row.get().dims;
  if (d.size() != 5) b.fail(fault::rank_mismatch, "combine_from_groups", {}, 5, d.size());
  else if (d != detail::route::dims({r.group_dim, r.expert_dim, row[0], r.place_dim, d[4]})) b.fail(fault::dims_differ, "combine_from_groups");
  if (b.failed()) return b.nothing();
  const symbol rows = detail::emit_combine(r.slot, r.weight, h, detail::route::group_experts, detail::route::group_rows,
                                           detail::route::dims({r.group_dim, row[0], r.row_dim, d[4]}));
  return detail::emit_combine(r.row, b.nothing(), rows, detail::route::row_buffers, detail::route::tokens,
                              detail::route::dims({row[0], row[1], d[4]}));
}

}}  // namespace gshard::v0

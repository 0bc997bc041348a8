// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Routes tokens to groups of experts, and within each group to experts. A token is sent once to a group, for all of its experts there. If a
// group's experts are on one node, this removes duplicates from the traffic between nodes.

#include <gshard/core/base/fixed_string.hpp>
#include <gshard/core/base/list_view.hpp>
#include <gshard/core/grad/differentiator.hpp>
#include <gshard/core/ir/op.hpp>
#include <gshard/core/ir/spec.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/moe/routing/gating.hpp>
#include <gshard/moe/routing/routing.hpp>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string_view>

namespace gshard { inline namespace v0 {

namespace op {
inline constexpr operation expert_group_slots{.id = 43, .name = "expert_group_slots", .routes = true};
inline constexpr operation expert_group_slots_grad{.id = 44, .name = "expert_group_slots_grad", .routes = true};
}  // namespace op

/// expected_expert_groups(E, n, k): the expected number of expert groups that a token is sent to, if it chooses k of E experts uniformly:
/// n (1 - C(E - E/n, k) / C(E, k)), where n groups have E/n experts each. NaN if n does not divide E, or k is not from 0 to E.
/// Shapes: numbers.
/// Communicates: nothing.
/// Compile time: nothing; it is constexpr.
/// Throws: nothing.
/// @see send_to_expert_groups, moe_options
constexpr double expected_expert_groups(int experts, int groups, int k) {
  if (groups < 1 || experts < 1 || experts % groups != 0 || k < 0 || k > experts) return std::numeric_limits<double>::quiet_NaN();
  const int others = experts - experts / groups;  // experts of other groups
  double none_here = 1;
  for (int i = 0; i < k; ++i) none_here *= i < others ? double(others - i) / double(experts - i) : 0;
  return groups * (1 - none_here);
}

/// The routing of a gating's tokens to N expert groups. Group n has the experts [n * E/N, (n + 1) * E/N). The numbers of groups and of rows
/// are settings of the model. They do not depend on the devices.
struct expert_group_routing {
  symbol rows;      ///< [N,G,R,M]: the tokens of each group, zero in empty rows
  symbol row;       ///< [G,S,N]: n * R + r if row r of group n holds the token, else -1
  symbol slot;      ///< [N,G,R,K]: for each row, the slots e * C + c of its experts, numbered within the group, then -1
  symbol weight;    ///< [N,G,R,K]: their weights
  symbol overflow;  ///< [G] choices refused because the group had no row left
  int group_dim = 0, row_dim = 0, expert_dim = 0, place_dim = 0;  // the dims N, R, E/N, C
  axis_name axis{};  // shards the groups, unless it is empty
};

namespace detail {
constexpr void expert_group_slots_gradient(differentiator& d, const node& n);
inline constexpr operation_rules expert_group_slots_rules{.of = op::expert_group_slots, .gradient = expert_group_slots_gradient};

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

constexpr void expert_group_slots_gradient(differentiator& d, const node& n) {
  if (d.wants(n, 1)) d.add(n.input(1), emit_expert_group_slots_grad(d.in(n, 0), d.out(n), d.gradient(n, 2), n.attr));
}

/// Shards the first dim of x, the expert groups, over the axis, unless that is empty. All other dims are open.
constexpr symbol shard_groups(const axis_name& axis, symbol x, std::string_view verb) {
  builder& b = *x.owner;
  if (b.failed() || axis.view().empty()) return x;
  named_sharding named;
  named.rank = x.rank();
  named.open = (1u << x.rank()) - 2;
  named.add(axis.view(), 0);
  const sharding layout = b.resolve(named, verb);
  return b.failed() ? b.nothing() : emit_annotate(x, layout, 1);  // after the shardings of tokens and parameters
}
/// The choices of a gating for tokens x [G,S,M], which go to groups of experts. If the program fails, `found` is false.
constexpr one_hot_parts choices_of_tokens(const gating_result& gating, symbol x, int groups, takes_gatings taken, std::string_view verb) {
  builder& b = *x.owner;
  const one_hot_parts choices = choices_of(b, gating, taken, verb);
  if (!choices.found || !b.has(x) || !require_elements(b, op::dispatch, verb, {x, choices.weight})) return {};
  const dim_list slots = choices.slot.get().dims, d = x.get().dims;
  if (d.size() != 3) b.fail(fault::rank_mismatch, verb, {}, 3, d.size());
  else if (const int at = b.first_difference(d, slots); at < 2) b.fail(fault::dims_differ, verb, {}, 1, at);
  const std::int64_t experts = b.known_extent(gating.combine.get().dims[2]);
  if (groups < 1) b.fail_range(verb, "groups", groups);
  else if (experts >= 0 && groups > experts) b.fail_range(verb, "groups, experts", groups, experts);
  return b.failed() ? one_hot_parts{} : choices;
}
}  // namespace detail

/// send_to_expert_groups<"node">(gating, x, N, rows): rows[n,g,r] = x[g,s], where s is the r-th token of token group g with an expert in
/// expert group n. Each token is sent once to every such group, with its slots and weights there. The groups are sharded over the mesh
/// axis; without an axis, the planner chooses their sharding. An expert group has R rows for each token group. With rows = capacity{N}, the
/// default, R = S, and no choice is lost. `expected_expert_groups` is the factor that suffices on average under uniform routing. If a token
/// gets no row, its choices in that group are dropped, and their slots stay empty. All other choices keep slot and weight: each expert gets
/// the same tokens as without groups, in the same slots.
/// Shapes: gating of G,S,E,C; x [G,S,M] -> see `expert_group_routing`, R = ceil(factor * S / N), at most S. The minimum and the multiple of
/// `capacity` may give more rows.
/// Communicates: if the axis is the most minor one that shards G, one all_to_all over it, of rows, slots and weights.
/// Compile time: that `gating` is the result of a gating verb, or a chunk of its token groups, without replicas or chunks of slots; ranks,
/// dims and element types; that N is from 1 to E, if E is known; that the mesh has the axis; that `rows` is in range.
/// Throws: nothing.
/// @see dispatch_in_groups, combine_from_groups, chunks_of_token_groups, nn::moe
template <fixed_string Axis = "">
constexpr expert_group_routing send_to_expert_groups(const gating_result& gating, here x, int groups, capacity rows = {0}) {
  constexpr std::string_view verb = "send_to_expert_groups";
  builder& b = *x.owner;
  expert_group_routing r{b.nothing(), b.nothing(), b.nothing(), b.nothing(), b.nothing()};
  const detail::one_hot_parts choices = detail::choices_of_tokens(gating, x, groups, detail::takes_gatings::undivided, verb);
  if (!choices.found) return r;
  const dim_list combine = gating.combine.get().dims, slots = choices.slot.get().dims, d = x.get().dims;
  const int G = slots[0], S = slots[1], K = slots[2];
  r.axis = axis_name(Axis.view());
  r.group_dim = b.fixed_dim(groups);
  if (rows.factor >= groups) rows.factor = 0;  // a row for each token
  r.row_dim = detail::capacity_dim(b, rows, S, r.group_dim, S, verb, "rows");
  if (b.failed()) return r;
  r.expert_dim = b.ratio_dim(1, combine[2], r.group_dim);
  r.place_dim = combine[3];
  const dtype type = x.get().type;
  using detail::route::dims;
  const dim_list of_rows = dims({r.group_dim, G, r.row_dim, K});
  b.add_node(b.use(detail::expert_group_slots_rules), {choices.slot.id, choices.weight.id}, detail::route::expert_group_slots(),
             {.dims = dims({r.expert_dim, r.place_dim})},
             {{dims({G, S, r.group_dim}), dtype::i32}, {of_rows, dtype::i32}, {of_rows, type}, {dims({G}), type}});
  r.row = b.result_of_last(0);
  const symbol slot = b.result_of_last(1), weight = b.result_of_last(2);
  r.overflow = b.result_of_last(3);
  const symbol sent = detail::emit_dispatch(r.row, b.nothing(), x, detail::route::tokens, detail::route::rows_by_group,
                                            dims({r.group_dim, G, r.row_dim, d[2]}));
  r.rows = detail::shard_groups(r.axis, sent, verb);
  r.slot = detail::shard_groups(r.axis, slot, verb);
  r.weight = detail::shard_groups(r.axis, weight, verb);
  return r;
}

/// dispatch_in_groups(routing): the inputs of all experts. Each row goes to its experts within the group.
/// Shapes: -> [N,E/N,G,C,M], zero in empty slots.
/// Communicates: if an axis that shards the rows' G shards E/N, one all_to_all over it.
/// Compile time: nothing.
/// Throws: nothing.
/// @see send_to_expert_groups, combine_from_groups
constexpr symbol dispatch_in_groups(const expert_group_routing& r) {
  builder& b = *r.rows.owner;
  if (!b.has(r.rows)) return b.nothing();
  const dim_list d = r.rows.get().dims;
  return detail::emit_dispatch(r.slot, b.nothing(), r.rows, detail::route::group_rows, detail::route::group_experts,
                               detail::route::dims({r.group_dim, r.expert_dim, d[1], r.place_dim, d[3]}));
}

namespace detail {
constexpr symbol emit_sum_in_groups(const expert_group_routing& r, symbol h, std::string_view verb) {
  builder& b = *h.owner;
  if (!require_elements(b, op::combine, verb, {h, r.weight})) return b.nothing();
  using route::dims;
  const dim_list d = h.get().dims, row = r.row.get().dims;
  if (d.size() != 5) b.fail(fault::rank_mismatch, verb, {}, 5, d.size());
  else if (const dim_list of_h = dims({r.group_dim, r.expert_dim, row[0], r.place_dim, d[4]}); !b.same_extents(d, of_h))
    b.fail(fault::dims_differ, verb, {}, 0, b.first_difference(d, of_h));
  if (b.failed()) return b.nothing();
  const symbol sums =
      emit_combine(r.slot, r.weight, h, route::group_experts, route::group_rows, dims({r.group_dim, row[0], r.row_dim, d[4]}));
  return shard_groups(r.axis, sums, verb);
}
}  // namespace detail

/// sum_in_groups(routing, h): for each row of a group, the weighted sum of the results of its experts, in the order of the token's choices.
/// Shapes: h [N,E/N,G,C,M] -> [N,G,R,M], zero in empty rows.
/// Communicates: if axes shard E/N, one all_to_all over them.
/// Compile time: ranks, dims and element types.
/// Throws: nothing.
/// @see combine_groups, combine_from_groups
constexpr symbol sum_in_groups(const expert_group_routing& r, here h) { return detail::emit_sum_in_groups(r, h, "sum_in_groups"); }

/// combine_groups(routing, sums): for each token, the sum of its rows over the expert groups, in their order.
/// Shapes: sums [N,G,R,M] -> [G,S,M], zero where a token has no expert.
/// Communicates: if an axis shards the expert groups, one all_to_all over it.
/// Compile time: ranks, dims and element types.
/// Throws: nothing.
/// @see sum_in_groups, combine_from_groups
constexpr symbol combine_groups(const expert_group_routing& r, here sums) {
  constexpr std::string_view verb = "combine_groups";
  builder& b = *sums.owner;
  if (!detail::require_elements(b, op::combine, verb, {sums, r.weight})) return b.nothing();
  using detail::route::dims;
  const dim_list d = sums.get().dims, row = r.row.get().dims;
  if (d.size() != 4) b.fail(fault::rank_mismatch, verb, {}, 4, d.size());
  else if (const dim_list of_sums = dims({r.group_dim, row[0], r.row_dim, d[3]}); !b.same_extents(d, of_sums))
    b.fail(fault::dims_differ, verb, {}, 0, b.first_difference(d, of_sums));
  if (b.failed()) return b.nothing();
  return detail::emit_combine(r.row, b.nothing(), sums, detail::route::rows_by_group, detail::route::tokens, dims({row[0], row[1], d[3]}));
}

/// combine_from_groups(routing, h): the weighted sums of the results of each token's experts: first within each group, in the order of its
/// choices, then over the groups, in their order. Bits do not depend on the number of devices that hold the experts. They may differ from
/// the sum without groups. Equals combine_groups of sum_in_groups.
/// Shapes: h [N,E/N,G,C,M] -> [G,S,M], zero where a token has no expert.
/// Communicates: one all_to_all over the axes that shard E/N, and one of the rows over the axis of the groups.
/// Compile time: ranks, dims and element types.
/// Throws: nothing.
/// @see send_to_expert_groups, dispatch_in_groups, sum_in_groups, combine_groups
constexpr symbol combine_from_groups(const expert_group_routing& r, here h) {
  const symbol sums = detail::emit_sum_in_groups(r, h, "combine_from_groups");
  return combine_groups(r, here(sums, h));
}

template <fixed_string Axis = "", class... Given>
  requires(!detail::call<3, gating_result, symbol, int, capacity>::fits<Given...>)
constexpr auto send_to_expert_groups(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: send_to_expert_groups<\"x\">(gating, x, 4, capacity{4}) takes the result of a gating, "
                                           "a tensor of a program, a number and a capacity");
  const symbol refused = detail::refused(given...);
  return expert_group_routing{refused, refused, refused, refused, refused};
}
GSHARD_TAKES(combine_from_groups, (detail::call<2, expert_group_routing, symbol>::fits<Given...>),
             "combine_from_groups(groups, h) takes the result of send_to_expert_groups and a tensor of a program")
GSHARD_TAKES(sum_in_groups, (detail::call<2, expert_group_routing, symbol>::fits<Given...>),
             "sum_in_groups(groups, h) takes the result of send_to_expert_groups and a tensor of a program")
GSHARD_TAKES(combine_groups, (detail::call<2, expert_group_routing, symbol>::fits<Given...>),
             "combine_groups(groups, sums) takes the result of send_to_expert_groups and a tensor of a program")

}}  // namespace gshard::v0

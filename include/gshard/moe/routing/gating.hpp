// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Top-k gating of a mixture of experts. With k = 2 it is Algorithm 1 of arXiv 2006.16668.

#include <gshard/core/base/list_view.hpp>
#include <gshard/core/grad/differentiator.hpp>
#include <gshard/core/ir/op.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/moe/routing/routing.hpp>
#include <gshard/moe/routing/routing_options.hpp>
#include <gshard/ops/index/one_hot.hpp>
#include <gshard/ops/random/random.hpp>
#include <gshard/ops/reduce/argmax.hpp>
#include <gshard/ops/window/moved.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace gshard { inline namespace v0 {

namespace op {
inline constexpr operation top_k_gating{.id = 41, .name = "top_k_gating", .routes = true, .gates = true};
inline constexpr operation top_k_gating_grad{.id = 42, .name = "top_k_gating_grad", .routes = true, .gates = true};
}  // namespace op

struct gating_result {
  symbol combine;   ///< [G,S,E,C] weights; einsum with it is an index gather
  symbol dispatch;  ///< [G,S,E,C] mask of its non-zeros; einsum with it is an index scatter
  symbol aux;       ///< scalar: mean over groups of (1/E) sum_e (c_e / n) m_e, n real tokens in the group
  symbol load;      ///< [G,E] choices that each expert took
  symbol overflow;  ///< [G] choices refused because the expert was full
  symbol demand;    ///< [G,E] choices of each expert, including refused ones; if experts choose, the load
};

namespace detail {
/// The gatings that a verb takes. undivided: without replicas or chunks of slots. of_tokens: undivided, and tokens choose their experts.
enum class takes_gatings : std::uint8_t { all, undivided, of_tokens };

/// The node that computed the slots of a gating. Chunks of token groups are slices of these slots.
constexpr node maker_of_slots(const builder& b, symbol slot) {
  for (std::int32_t id = slot.id;;) {
    const std::int32_t producer = b.program.at(id).producer;
    const node made_by = producer < 0 ? node{} : b.program.nodes[std::size_t(producer)];
    if (producer < 0 || (made_by.kind != op::reshape && made_by.kind != op::strided_slice)) return made_by;
    id = made_by.input(0);
  }
}

/// The slots and weights of a gating. If `verb` does not take it, the program fails, and `found` is false.
constexpr one_hot_parts choices_of(builder& b, const gating_result& gating, takes_gatings taken, std::string_view verb) {
  if (!b.has(gating.combine)) return {};
  const one_hot_parts choices = one_hot_of(gating.combine);
  const node made_by = choices.found ? maker_of_slots(b, choices.slot) : node{};
  const bool undivided = made_by.kind == op::top_k_gating;
  if (!choices.found || choices.weight.id < 0 || (taken != takes_gatings::all && !undivided) ||
      (taken == takes_gatings::of_tokens && own<gating_attributes>(made_by).by_experts))
    b.fail(fault::wrong_gating, verb);
  if (b.failed()) return {};
  b.bypasses.push_back({-1, gating.combine.id, 0, {}, {}, verb});
  return choices;
}

/// The dim of the slots for S tokens at each of E experts. Factor 0: the dim `otherwise`, before minimum and multiple. Errors name the
/// capacity `option`.
constexpr int capacity_dim(builder& b, const capacity& c, int S, int E, int otherwise, std::string_view verb, std::string_view option) {
  check_capacity(b, c, verb, option);
  if (b.failed()) return otherwise;
  const bool unlimited = c.factor > double(std::numeric_limits<int>::max());
  return b.rounded_dim(unlimited ? S : c.factor > 0 ? b.ratio_dim(c.factor, S, E) : otherwise, c.minimum, c.multiple);
}

inline constexpr auto sampling_score = [](auto is_first, auto gate, auto score, auto noise) {
  using number = decltype(gate);
  constexpr auto infinity = std::numeric_limits<float>::infinity();
  return is_first > 0.5 ? number(infinity) : score == -infinity ? number(-infinity) : log(gate) + noise;
};
/// For second_expert::sampled: scores that keep the first choice and sample the second in proportion to the other gates (Gumbel's method).
/// Experts with score -infinity are not sampled.
constexpr symbol emit_sampled_second(symbol gates, symbol scores) {
  const line_of_call kept(*gates.owner);
  const dim_list dims = gates.get().dims;
  const dtype type = gates.get().type;
  const symbol first = emit_equal_index(argmax<"GSE->GS">(scores), dims[2], type);
  const symbol fixed_gates = stop_gradient(gates), fixed_scores = stop_gradient(scores);
  const symbol gumbel = emit_gumbel(*gates.owner, dims, type);
  return map<sampling_score>(first, fixed_gates, fixed_scores, gumbel);
}

inline constexpr auto share_of_sum = [](auto w, auto sum) { return sum == 0 ? decltype(w)(0) : w / sum; };
/// The weights of choices [G,S,K], divided by their sum over K. Zeros stay zeros.
constexpr symbol emit_normalized(symbol weight) {
  const line_of_call kept(*weight.owner);
  const std::array<symbol, 2> operands{weight, sum<"GSK->GS">(weight)};
  return emit_map_of(pointwise_of<share_of_sum, 2>, operands, std::array{counting(3), counting(2)}, weight);
}

constexpr void gating_gradient(differentiator& d, const node& n);
inline constexpr operation_rules top_k_gating_rules{.of = op::top_k_gating, .gradient = gating_gradient};

/// op::top_k_gating_grad: the derivative of gates, from the derivatives of weights and of the auxiliary loss.
constexpr symbol emit_gating_grad(builder& b, const node& n, symbol dweight, symbol daux) {
  sharding_rule r = route::base();
  r.blocked = n.rule.blocked;
  std::array<std::int32_t, 7> ids{n.input(0), n.output(0), dweight.id, daux.id};
  r.set_operands({n.rule.in[0], n.rule.out[0], n.rule.out[1], n.rule.out[2]});
  for (int i = 1; i < n.inputs; ++i) {
    ids[std::size_t(i) + 3] = n.input(i);
    r.in[std::size_t(i) + 3] = n.rule.in[std::size_t(i)];
  }
  r.out[0] = n.rule.in[0];
  const value gates = b.program.at(n.input(0));
  return {&b, b.add_node(op::top_k_gating_grad, list_view(ids.data(), std::size_t(n.inputs) + 3), r, n.attr, {{gates.dims, gates.type}})};
}

constexpr void gating_gradient(differentiator& d, const node& n) {
  if (!d.wants(n, 0)) return;
  const symbol dweight = d.gradient(n, 1);
  d.add(n.input(0), emit_gating_grad(d.owner(), n, dweight, d.gradient(n, 2)));
}

/// op::top_k_gating. Results: slot [G,S,K], weight [G,S,K], aux [G], load [G,E], overflow [G], demand [G,E]. `verb`: its name in errors.
/// If experts choose, K = E. The options are in effect, @see in_effect.
constexpr gating_result emit_gating(symbol gates, symbol mask, const routing_options& o, std::string_view verb) {
  builder& b = *gates.owner;
  const bool by_experts = o.choice.experts_choose;
  const gating_result nothing{b.nothing(), b.nothing(), b.nothing(), b.nothing(), b.nothing(), b.nothing()};
  if (!require_real(b, verb, {gates})) return nothing;
  const value g = gates.get();
  if (g.rank() != 3) {
    b.fail(fault::rank_mismatch, verb, {}, 3, g.rank());
    return nothing;
  }
  const std::int64_t experts = b.known_extent(g.dims[2]);
  if (!by_experts && o.k > 2 && experts >= 0 && o.k > experts) b.fail_range(verb, ".k, experts", o.k, experts);
  using route::dims;
  const int G = g.dims[0], S = g.dims[1], E = g.dims[2];
  const int place = capacity_dim(b, o.slots, S, E, S, verb, verb == "top2_gating" ? "capacity" : ".slots");
  if (b.failed()) return nothing;
  sharding_rule rule = route::base();
  rule.block(route::token);
  rule.block(route::expert);
  rule.in[0] = route::factors({route::group, route::token, route::expert});
  rule.set_results({route::chosen, route::chosen, route::factors({route::group}), route::factors({route::group, route::expert}),
                    route::factors({route::group}), route::factors({route::group, route::expert})});
  attributes attr{.key = b.next_random_key(), .dims = dims({place})};
  gating_attributes settings{.k = by_experts ? 0 : o.k,
                             .second = o.choice.second,
                             .by_experts = by_experts,
                             .gates_as_weights = o.norm != gate_norm::chosen || by_experts,
                             .threshold = o.choice.threshold};
  std::array<std::int32_t, 4> in{gates.id};
  std::size_t inputs = 1;
  const auto add = [&](route::gating_input which, std::string_view name, symbol s, const dim_list& expected) {
    if (s.owner == nullptr || b.failed() || !b.has(s)) return;
    if (s.get().type != g.type) b.fail_type(verb, name, s.get().type, only(g.type));
    else b.require_dims(verb, name, s, expected);
    if (b.failed()) return;
    settings.operands |= 1u << int(which);
    rule.in[inputs] = s.rank() == 3 ? rule.in[0] : route::factors({route::group, route::token});
    in[inputs++] = s.id;
  };
  symbol scores = o.scores;
  if (o.choice.second == second_expert::sampled && !b.failed()) {
    settings.second = second_expert::always;
    scores = emit_sampled_second(gates, scores.owner ? scores : gates);
  }
  add(route::gating_input::padding, "mask", mask, dims({G, S}));
  add(route::gating_input::scores, ".scores", scores, g.dims);
  add(route::gating_input::importance, ".importance", o.importance, dims({G, S}));
  if (b.failed()) return nothing;
  const int choices = by_experts ? E : b.fixed_dim(o.k);
  attr.own = settings;
  b.add_node(b.use(top_k_gating_rules), list_view(in.data(), inputs), rule, attr,
             {{dims({G, S, choices}), dtype::i32},
              {dims({G, S, choices}), g.type},
              {dims({G}), g.type},
              {dims({G, E}), g.type},
              {dims({G}), g.type},
              {dims({G, E}), g.type}});
  const line_of_call kept(b);
  const symbol slot = b.result_of_last(0), aux = b.result_of_last(2), load = b.result_of_last(3), overflow = b.result_of_last(4),
               demand = b.result_of_last(5);
  symbol weight = b.result_of_last(1);
  if (o.norm == gate_norm::kept || (by_experts && o.norm == gate_norm::chosen)) weight = emit_normalized(weight);
  if (o.scale != 1) weight = emit_scale(weight, o.scale);
  return {emit_one_hot(slot, weight, E, place, g.type), emit_one_hot(slot, b.nothing(), E, place, g.type), mean(aux), load,
          overflow, demand};
}
/// The gating of a verb that takes gates.
constexpr gating_result gate_by(symbol gates, symbol mask, const routing_options& o, std::string_view verb) {
  check_of_gates(*gates.owner, o, verb);
  check_routing(*gates.owner, o, verb);
  return emit_gating(gates, mask, in_effect(o), verb);
}
}  // namespace detail

/// top2_gating(gates, mask, capacity): Algorithm 1 of arXiv 2006.16668, which is top_k_gating(gates, mask, {.slots = capacity}).
/// Shapes: gates [G,S,E], whose rows sum to 1; mask [G,S] -> see `gating_result`, see `capacity` for C.
/// Communicates: nothing. Only G may be sharded: other dims of gates are replicated first.
/// Compile time: ranks, dims and element types; that the capacity is in range.
/// Throws: `gshard::error`, if E is 0, or E * C exceeds the largest int32.
/// @see capacity, gating_result, top_k_gating, nn::moe
constexpr gating_result top2_gating(here gates, capacity c = {}) {
  return detail::gate_by(gates, {}, {.slots = c}, "top2_gating");
}
constexpr gating_result top2_gating(here gates, symbol mask, capacity c = {}) {
  (void)gates.owner->has(mask);  // reports a refused call
  return detail::gate_by(gates, mask, {.slots = c}, "top2_gating");
}

/// top_k_gating(gates, mask, options): each token chooses the k experts with the largest gates, or scores. Its weights are the gates of
/// these experts, divided by their sum, unless the options say otherwise. Without k, it is Algorithm 1 of arXiv 2006.16668. Groups are
/// independent, tokens are taken in order, and all first choices come before any second one, and so on. An expert takes at most C tokens of
/// a group. Tokens whose mask is 0 (padding) are neither routed nor counted. If E < k, and E is known only at run time, a token chooses all
/// E experts. With choice::by_experts, each expert chooses C tokens: `aux` is 0, and `overflow` counts the tokens without an expert.
/// Shapes: gates [G,S,E]; mask [G,S] -> see `gating_result`, and `capacity` for C. Routing holds an index and a weight for each of
/// [G,S,k], or [G,S,E] if experts choose. No tensor [G,S,E,C] exists if its readers are the einsums of `nn::moe`.
/// Communicates: nothing. Only G may be sharded: other dims of gates are replicated first.
/// Compile time: ranks, dims and element types; that a k above 2 is at most E, if E is known; that options are in range and have an effect.
/// Throws: `gshard::error`, if E is 0, or E * C exceeds the largest int32.
/// @see routing_options, gating_result, nn::route, nn::moe
constexpr gating_result top_k_gating(here gates, routing_options options = {}) {
  return detail::gate_by(gates, {}, options, "top_k_gating");
}
constexpr gating_result top_k_gating(here gates, symbol mask, routing_options options = {}) {
  (void)gates.owner->has(mask);  // reports a refused call
  return detail::gate_by(gates, mask, options, "top_k_gating");
}

namespace detail {
constexpr gating_result refused_gating(symbol none) { return {none, none, none, none, none, none}; }
}  // namespace detail
template <class... Given>
  requires(!detail::call<1, symbol, capacity>::fits<Given...> && !detail::call<2, symbol, symbol, capacity>::fits<Given...>)
constexpr auto top2_gating(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: top2_gating(gates, mask, capacity{2}) takes gates and maybe a mask, tensors of a program, and a capacity");
  return detail::refused_gating(detail::refused(given...));
}
template <class... Given>
  requires(!detail::call<1, symbol, routing_options>::fits<Given...> && !detail::call<2, symbol, symbol, routing_options>::fits<Given...>)
constexpr auto top_k_gating(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: top_k_gating(gates, mask, {.k = 8}) takes gates and maybe a mask, tensors of a program, and settings");
  return detail::refused_gating(detail::refused(given...));
}

}}  // namespace gshard::v0

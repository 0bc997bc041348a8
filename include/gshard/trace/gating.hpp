// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Top-k gating of a mixture of experts. With k = 2 it is Algorithm 1 of arXiv 2006.16668.

#include <gshard/base/list_view.hpp>
#include <gshard/trace/builder.hpp>
#include <gshard/trace/einsum.hpp>
#include <gshard/trace/routing.hpp>

#include <array>
#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 {

/// Slots for tokens per expert and group: ceil(factor * S / E), at least one. The paper uses capacity{2}.
struct capacity {
  double factor = 2;
};

/// Settings of top_k_gating.
struct gating_options {
  int k = 2;           ///< Experts per token.
  capacity places{0};  ///< Slots per expert and group. Factor 0: k, which is enough if all experts take equally many tokens.
};

struct gating_result {
  symbol combine;   ///< [G,S,E,C] weights; einsum with it is an index gather
  symbol dispatch;  ///< [G,S,E,C] mask of its non-zeros; einsum with it is an index scatter
  symbol aux;       ///< scalar: mean over groups of (1/E) sum_e (c_e / n) m_e, n real tokens in the group
  symbol load;      ///< [G,E] choices that each expert took
  symbol overflow;  ///< [G] choices refused because the expert was full
};

namespace detail {
constexpr capacity places_of(const gating_options& o) { return o.places.factor > 0 ? o.places : capacity{double(o.k)}; }

/// op::top_k_gating. Results: slot [G,S,K], weight [G,S,K], aux [G], load [G,E], overflow [G].
/// The mask is the last operand, if there is one. `verb`: its name in errors.
constexpr gating_result emit_gating(symbol gates, symbol mask, int k, capacity c, second_expert second, std::string_view verb) {
  builder& b = *gates.owner;
  const gating_result nothing{b.nothing(), b.nothing(), b.nothing(), b.nothing(), b.nothing()};
  if (!require_real(b, verb, {gates, mask.id >= 0 ? mask : gates})) return nothing;
  const value g = gates.get();
  if (g.rank() != 3) {
    b.fail(fault::rank_mismatch, verb, {}, 3, g.rank());
    return nothing;
  }
  if (mask.id >= 0 && (mask.rank() != 2 || mask.get().dims[0] != g.dims[0] || mask.get().dims[1] != g.dims[1])) {
    b.fail(fault::dims_differ, verb, {}, 1, 0);
    return nothing;
  }
  if (const std::int64_t experts = b.known_extent(g.dims[2]); k < 1 || (k > 2 && experts >= 0 && k > experts)) {
    b.fail(fault::bad_range, verb, {}, k);
    return nothing;
  }
  const int place = b.ratio_dim(c.factor, g.dims[1], g.dims[2]), choices = b.fixed_dim(k);
  using route::dims;
  sharding_rule rule = route::base();
  rule.block(route::token);
  rule.block(route::expert);
  rule.in[0] = route::factors({route::group, route::token, route::expert});
  rule.in[1] = route::factors({route::group, route::token});
  rule.set_results({route::chosen, route::chosen, route::factors({route::group}), route::factors({route::group, route::expert}),
                     route::factors({route::group})});
  const std::array<std::int32_t, 2> in{gates.id, mask.id};
  const int G = g.dims[0], S = g.dims[1], E = g.dims[2];
  b.add_node(op::top_k_gating, list_view(in.data(), mask.id < 0 ? 1u : 2u), rule,
             {.count = k, .key = b.next_random_key(), .second = second, .dims = dims({place})},
             {{dims({G, S, choices}), dtype::i32},
              {dims({G, S, choices}), g.type},
              {dims({G}), g.type},
              {dims({G, E}), g.type},
              {dims({G}), g.type}});
  const symbol slot = b.result_of_last(0), weight = b.result_of_last(1), aux = b.result_of_last(2);
  const symbol load = b.result_of_last(3), overflow = b.result_of_last(4);
  return {emit_one_hot(slot, weight, E, place, g.type), emit_one_hot(slot, b.nothing(), E, place, g.type), mean(aux), load,
          overflow};
}
}  // namespace detail

/// top2_gating(gates, mask, capacity, second_expert): Algorithm 1 of arXiv 2006.16668. Groups are independent, tokens are taken in order,
/// and all first choices come before any second one. An expert takes at most C tokens of a group. Tokens whose mask is 0 (padding) are
/// neither routed nor counted.
/// Shapes: gates [G,S,E], whose rows sum to 1; mask [G,S] -> see `gating_result`, C = ceil(factor * S / E).
/// Communicates: nothing. Only G may be sharded: other dims of gates are replicated first.
/// Compile time: ranks, dims and element types.
/// Throws: nothing.
/// @see capacity, gating_result, top_k_gating, nn::moe
constexpr gating_result top2_gating(here gates, capacity c = {}, second_expert second = second_expert::random) {
  return detail::emit_gating(gates, gates.owner->nothing(), 2, c, second, "top2_gating");
}
constexpr gating_result top2_gating(here gates, symbol mask, capacity c = {}, second_expert second = second_expert::random) {
  (void)gates.owner->has(mask);  // or the program has failed
  return detail::emit_gating(gates, mask, 2, c, second, "top2_gating");
}

/// top_k_gating(gates, mask, options): each token chooses the k experts with the largest gates. Its weights are these gates, divided by
/// their sum. Groups are independent, tokens are taken in order, and all first choices come before any second one, and so on. An expert
/// takes at most C tokens of a group. Tokens whose mask is 0 (padding) are neither routed nor counted. With k = 2, it equals
/// `top2_gating(gates, mask, places, second_expert::always)` bit for bit.
/// Shapes: gates [G,S,E], whose rows sum to 1; mask [G,S] -> see `gating_result`, C = ceil(factor * S / E). Routing holds an index and a
/// weight for each of [G,S,k]. No tensor [G,S,E,C] exists if its readers are the einsums of `nn::moe`.
/// Communicates: nothing. Only G may be sharded: other dims of gates are replicated first.
/// Compile time: ranks, dims and element types; that k is from 1 to E, if E is known.
/// Throws: nothing. If there are fewer experts than k, a token chooses all.
/// @see gating_options, gating_result, nn::moe
constexpr gating_result top_k_gating(here gates, gating_options options = {}) {
  return detail::emit_gating(gates, gates.owner->nothing(), options.k, detail::places_of(options), second_expert::always, "top_k_gating");
}
constexpr gating_result top_k_gating(here gates, symbol mask, gating_options options = {}) {
  (void)gates.owner->has(mask);  // or the program has failed
  return detail::emit_gating(gates, mask, options.k, detail::places_of(options), second_expert::always, "top_k_gating");
}

}}  // namespace gshard::v0

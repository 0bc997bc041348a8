// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The router of a mixture of experts: scores, noise, selection bias and losses, from which gating chooses experts.

#include <gshard/core/base/math.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/iota.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/named_scope.hpp>
#include <gshard/core/trace/parameter_scope.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/moe/routing/gating.hpp>
#include <gshard/ops/along/sort.hpp>
#include <gshard/ops/index/one_hot.hpp>
#include <gshard/ops/random/random.hpp>
#include <gshard/ops/reduce/logsumexp.hpp>
#include <gshard/ops/rows/softmax.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string_view>

namespace gshard { inline namespace v0 { namespace nn {

namespace detail {
/// The program fails unless x [G,S,M] has the dim M and the element type of wg [M,E], which is float or double. The mask [G,S] needs the
/// dims and the type of x. The fault names the layer and the operand: 0 is x, 1 the mask.
constexpr void check_tokens(symbol x, symbol mask, symbol wg, std::string_view layer) {
  builder& b = *wg.owner;
  const auto check = [&](int operand, std::string_view name, symbol s, std::initializer_list<int> dims) {
    if (!b.has(s)) return;
    const value& v = s.get();
    if (v.rank() != int(dims.size()))
      return b.fail(fault::rank_mismatch, tensor_name(name).append(" of ").append(layer).view(), {}, int(dims.size()), v.rank());
    const dtype type = wg.get().type;
    if (v.type != type || !is_real(type)) b.fail_type(layer, operand, v.type, is_real(type) ? only(type) : reals);
    int d = 0;
    for (const int dim : dims) {
      if (!b.same_extent(v.dims[d], dim)) b.fail(fault::dims_differ, layer, std::string_view("GSM").substr(std::size_t(d), 1), operand, d);
      ++d;
    }
  };
  if (!b.has(x)) return;
  const dim_list dims = x.get().dims;
  check(0, "x", x, {dims[0], dims[1], wg.get().dims[0]});
  check(1, "mask", mask, {dims[0], dims[1]});
}

/// 1 / (1 + exp(-v)).
inline constexpr auto sigmoid_score = [](auto v) {
  const auto e = exp(v < 0 ? v : -v);  // at most 1, so that derivatives are also finite
  return (v < 0 ? e : decltype(v)(1)) / (1 + e);
};
template <class Used = void>
constexpr symbol scores_of(symbol logits, gate_score score) {
  if (score == gate_score::softmax) return softmax(logits);
  return map<when_used<Used, sigmoid_score>>(logits);
}

inline constexpr auto score_if_chosen = [](auto v, auto is_chosen) {
  return is_chosen == 0 ? decltype(v)(-std::numeric_limits<float>::infinity()) : v;
};
/// Scores [G,S,E], -infinity for the experts of all sets except the best ones of each token.
template <class Used = void>
constexpr symbol of_best_sets(symbol scores, const expert_sets& sets) {
  using namespace gshard::detail;
  builder& b = *scores.owner;
  if (b.failed()) return scores;
  const int E = scores.get().dims[2], N = b.fixed_dim(sets.count);
  const symbol by_set = emit_split(scores, 2, N, b.ratio_dim(1, E, N));
  const symbol best = top_k(sum<"GSNK->GSN">(top_k(by_set, 2).values), sets.per_token).ids;
  const symbol chosen = sum<"GSKN->GSN">(emit_equal_index(best, N, scores.get().type));
  constexpr auto& f = pointwise_of<when_used<Used, score_if_chosen>, 2>;
  const symbol kept = emit_map_of(f, std::array{by_set, chosen}, std::array{counting(4), counting(3)}, by_set);
  return emit_merge(kept, 2, E);
}

inline constexpr auto at_least_one = [](auto n) { return max(n, decltype(n)(1)); };
inline constexpr auto square_if_real = [](auto v, auto real) { return real == 0 ? decltype(v)(0) : v * v * real; };  // 0 even if v is NaN
/// The sign of the change of a bias.
inline constexpr auto towards_mean = [](auto all, auto v) { return decltype(v)(v < all ? 1 : all < v ? -1 : 0); };
inline constexpr auto share_of_choices = [](auto v, auto all) { return all == 0 ? decltype(v)(0) : v / all; };
inline constexpr auto demand_over_mean = [](auto most, auto even) { return even == 0 ? decltype(most)(1) : most / even; };
inline constexpr auto entropy_term = [](auto p) { return p == 0 ? decltype(p)(0) : p * log(p); };
}  // namespace detail

/// route(m, x, mask, options): chooses experts for every token. The logits are einsum<"GSM,ME->GSE">(x, wg), the gates their softmax or
/// sigmoid. top_k_gating makes the choice. Adds the auxiliary losses to the model's. Parameters: wg [M,E]; with balance::bias the variable
/// bias [E], which update_bias changes.
/// Shapes: x [G,S,M], mask [G,S] -> see `gating_result`.
/// Communicates: nothing for routing if only G is sharded; a few scalars for losses.
/// Compile time: ranks, dims and element types; that options are in range and have an effect. Refused are scores, which the router makes; a
/// choice of a second expert with a k other than 2; if experts choose, importance, balance::bias, and k together with slots, whose default
/// it is; minimum and multiple of evaluation_slots without factor.
/// Throws: `gshard::error` when the program is bound, if E is 0, the number of sets does not divide E, or a set has one expert.
/// @see routing_options, update_bias, moe
template <class Used = void>
constexpr gating_result route(const parameter_scope& m, here x, symbol mask, const routing_options& options = {}) {
  builder& b = m.owner();
  const line_of_call kept(b);
  const symbol wg = m.param("wg", "ME", init::fan_in("M"));
  detail::check_tokens(x, mask, wg, "route");
  const named_scope gate(m, "gate other");
  gshard::detail::refuse_together(b, "route", {options.scores.owner != nullptr, ".scores"}, {{true, "route"}});
  gshard::detail::check_routing(b, options, "route");
  routing_options o = gshard::detail::in_effect(options);
  const symbol logits = [&] {
    const named_scope named(m, "gate einsum");
    symbol in = x;
    if (o.jitter > 0 && b.has(x)) {
      const symbol u = gshard::detail::emit_random(b, x.get().dims, x.get().type, false);
      in = x * (1 - o.jitter + 2 * o.jitter * u);
    }
    return full_precision([](symbol t, symbol w) { return einsum<"GSM,ME->GSE">(t, w); }, in, wg);
  }();
  const symbol gates = detail::scores_of(logits, o.score);
  symbol scores = gates;
  if (o.gumbel > 0 && b.has(logits)) {
    const symbol noise = gshard::detail::emit_gumbel(b, logits.get().dims, logits.get().type);
    scores = detail::scores_of(logits + o.gumbel * noise, o.score);
  }
  if (o.balance.has_bias()) scores = scores + m.variable("bias", "E", init::zeros());
  if (o.sets != expert_sets{}) scores = detail::of_best_sets(scores, o.sets);
  if (!b.failed() && scores.id != gates.id) o.scores = stop_gradient(scores);
  const gating_result r = gshard::detail::emit_gating(gates, mask, o, "top_k_gating");
  if (o.balance == balance::loss && !o.choice.experts_choose) m.loss(r.aux);
  if (o.z_loss > 0) {
    const symbol z = logsumexp<"GSE->GS">(logits);
    const symbol tokens = map<when_used<Used, detail::at_least_one>>(sum(mask));
    const symbol squares = map<when_used<Used, detail::square_if_real>>(z, mask);
    m.loss(o.z_loss * (sum(squares) / tokens));
  }
  return r;
}

template <class... Given>
  requires(!gshard::detail::call<3, parameter_scope, symbol, symbol, routing_options>::fits<Given...>)
constexpr auto route(const Given&... given) {
  static_assert(gshard::detail::accepts<Given...>,
                "gshard: nn::route(m, x, mask, {.k = 2}) takes the first argument of the model, two tensors of a program, and "
                "settings");
  const symbol none = gshard::detail::refused(given...);
  return gating_result{none, none, none, none, none, none};
}

/// update_bias(m, demand, rate): adds rate * sign(mean(demand) - demand[e]) to the variable bias [E] of the router. Experts with little
/// demand then get more tokens. `moe` calls it if the router trains. Demand includes refused choices, which the load of a full expert
/// lacks.
/// Shapes: demand [E].
/// Communicates: nothing.
/// Compile time: dims and element types.
/// Throws: nothing.
/// @see route, balance
template <class Used = void>
constexpr void update_bias(const parameter_scope& m, here demand, double rate) {
  const line_of_call kept(m.owner());
  const symbol bias = m.variable("bias", "E", init::zeros());
  // Compares E times the demand with the sum: both are exact, and the mean is not.
  const symbol all = sum(demand), each = scale_by<"E">(demand, 1);
  const symbol direction = map<when_used<Used, detail::towards_mean>>(all, each);
  m.update(bias, bias + rate * direction);
}
template <class... Given>
  requires(!gshard::detail::call<3, parameter_scope, symbol, double>::fits<Given...>)
constexpr auto update_bias(const Given&... given) {  // auto: the assertion fires before the model is evaluated
  static_assert(gshard::detail::accepts<Given...>,
                "gshard: nn::update_bias(m, demand, rate) takes the first argument of the model, a tensor of a program and a number");
  (void)gshard::detail::refused(given...);
}

/// Metrics of the balance of experts.
struct balance_metrics {
  symbol busiest;  ///< scalar: the largest demand over the mean one, 1 if all are equal
  symbol entropy;  ///< scalar: the entropy of the choices over experts, in nats, log E if all are equal
  symbol refused;  ///< scalar: the share of choices that were refused
};

/// measure_balance(demand, overflow): metrics of the results of `moe`, or of their sums over several layers. With n = sum(demand) and
/// p = demand / n: busiest = max(demand) / mean(demand), entropy = -sum(p log p), refused = overflow / n. If n = 0, they are 1, 0 and 0. If
/// experts choose, `refused` is the number of tokens without an expert, divided by the number of choices.
/// Shapes: demand [E]; overflow a scalar -> scalars.
/// Communicates: nothing.
/// Compile time: ranks.
/// Throws: nothing.
/// @see moe_result
template <class Used = void>
constexpr balance_metrics measure_balance(here demand, symbol overflow) {
  const line_of_call kept(*demand.owner);
  const symbol total = sum(demand), share = map<when_used<Used, detail::share_of_choices>>(demand, total);
  const symbol largest = reduce_max<"E->">(demand), mean_demand = mean(demand);
  return {map<when_used<Used, detail::demand_over_mean>>(largest, mean_demand),
          -sum(map<when_used<Used, detail::entropy_term>>(share)),
          map<when_used<Used, detail::share_of_choices>>(overflow, total)};
}
template <class... Given>
  requires(!gshard::detail::tensors<2>::fits<Given...>)
constexpr auto measure_balance(const Given&... given) {
  static_assert(gshard::detail::accepts<Given...>,
                "gshard: nn::measure_balance(demand, overflow) takes two tensors of a program, results of nn::moe");
  const symbol none = gshard::detail::refused(given...);
  return balance_metrics{none, none, none};
}

}}}  // namespace gshard::v0::nn

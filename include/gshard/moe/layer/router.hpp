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

/// The gates of a token: the softmax of its logits, or the sigmoid of each one.
enum class gate_score : std::uint8_t { softmax, sigmoid };

/// The method that balances the load of experts: the auxiliary loss of the paper, a bias of the choice alone (arXiv 2408.15664), or none.
/// The bias grows for experts with less demand than the mean.
enum class balance : std::uint8_t { loss, bias, off };

/// Settings of a router, which turns logits into choices. A part of moe_options.
struct router_options {
  gate_score score = gate_score::softmax;
  gate_norm norm = gate_norm::chosen;    ///< @see gating_options
  double scale = 1;                      ///< The scale of the weights.
  enum balance balance = balance::loss;  ///< bias: the variable `bias` [E] is added to the gates for the choice, not for the weights.
  double bias_rate = 0.001;              ///< With balance::bias: the change of each expert's bias in a run.
  int groups = 1;                        ///< Groups of experts. Each has the same number of experts, at least 2.
  /// A token uses experts of this many groups: the groups with the largest sums of their two best scores. It also uses others, if these
  /// groups have fewer than k experts.
  int groups_per_token = 1;
  double jitter = 0;                     ///< The input is multiplied by U(1 - jitter, 1 + jitter).
  double gumbel = 0;                     ///< The choice uses logits plus this times Gumbel noise.
  double threshold = 0.5;                ///< The threshold of second choices. @see gating_options
  double z_loss = 0;                     ///< Adds this times the mean of logsumexp(logits)^2 to the auxiliary losses.
  /// Each expert chooses its tokens, without balance loss. The paper has the norm `off`; with others, a token's weights sum to `scale`.
  /// @see expert_choice_gating
  bool experts_choose = false;
  bool training = true;                  ///< False: no noise, every second choice is used, and the bias stays.
  capacity evaluation_slots{0};          ///< Slots per expert without training. Factor 0: as in training.
  symbol importance{};                   ///< [G,S] @see gating_options
};

namespace detail {
/// Whether an option is set, and its name.
struct set_option {
  bool is_set;
  std::string_view name;
};
/// The program fails if an option is set together with one of `others`.
constexpr void refuse_together(builder& b, std::string_view layer, set_option one, std::initializer_list<set_option> others) {
  for (const set_option& other : others)
    if (one.is_set && other.is_set) b.fail(fault::options_conflict, layer, tensor_name(one.name).append(" and ").append(other.name).view());
}

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

template <class = void>
constexpr symbol scores_of(symbol logits, gate_score score) {
  if (score == gate_score::softmax) return softmax(logits);
  return map<[](auto v) {
    const auto e = exp(v < 0 ? v : -v);  // at most 1, so that derivatives are also finite
    return (v < 0 ? e : decltype(v)(1)) / (1 + e);
  }>(logits);
}

/// Scores [G,S,E], -infinity for the experts of all groups except the best ones of each token.
template <class = void>
constexpr symbol of_best_groups(symbol scores, int groups, int count) {
  using namespace gshard::detail;
  builder& b = *scores.owner;
  if (b.failed()) return scores;
  const int E = scores.get().dims[2], N = b.fixed_dim(groups);
  const symbol by_group = emit_split(scores, 2, N, b.ratio_dim(1, E, N));
  const symbol best = top_k(sum<"GSNK->GSN">(top_k(by_group, 2).values), count).ids;
  const symbol chosen = sum<"GSKN->GSN">(emit_equal_index(best, N, scores.get().type));
  constexpr auto& f = pointwise_of<[](auto v, auto is_chosen) {
    return is_chosen == 0 ? decltype(v)(-std::numeric_limits<float>::infinity()) : v;
  }, 2>;
  const symbol kept = emit_map_of(f, std::array{by_group, chosen}, std::array{counting(4), counting(3)}, by_group);
  return emit_merge(kept, 2, E);
}
}  // namespace detail

/// route(m, x, mask, gating, options): chooses experts for every token. The logits are einsum<"GSM,ME->GSE">(x, wg), the gates their
/// softmax or sigmoid. top_k_gating or expert_choice_gating makes the choice. Adds the auxiliary losses to the model's. Parameters: wg
/// [M,E]; with balance::bias the variable bias [E], which update_bias changes. The argument gating gives k, slots and second. All other
/// settings come from options, so other fields of gating are refused.
/// Shapes: x [G,S,M], mask [G,S] -> see `gating_result`.
/// Communicates: nothing for routing if only G is sharded; a few scalars for losses.
/// Compile time: ranks, dims and element types; that options are in range. Options without effect are refused:
/// - norm, scale, threshold, scores and importance of gating;
/// - second of gating, if k is not 2; threshold, if second compares no weight;
/// - if experts choose: importance, second, threshold, balance::bias, and k together with slots, whose default it is;
/// - groups_per_token without groups; minimum and multiple of evaluation_slots without factor.
/// Throws: `gshard::error` when the program is bound, if E is 0, `groups` does not divide E, or a group has one expert.
/// @see router_options, gating_options, update_bias, moe
template <class = void>
constexpr gating_result route(const parameter_scope& m, here x, symbol mask, gating_options gating = {},
                              const router_options& options = {}) {
  builder& b = m.owner();
  const line_of_call kept(b);
  const symbol wg = m.param("wg", "ME", init::fan_in("M"));
  detail::check_tokens(x, mask, wg, "route");
  const named_scope gate(m, "gate other");
  const bool noisy = options.training;
  const capacity& later = options.evaluation_slots;
  detail::refuse_together(b, "route", {true, "router_options"}, {{gating.norm != gating_options{}.norm, "gating.norm"},
                                                                  {gating.scale != gating_options{}.scale, "gating.scale"},
                                                                  {gating.threshold != gating_options{}.threshold, "gating.threshold"},
                                                                  {gating.scores.owner != nullptr, "gating.scores"},
                                                                  {gating.importance.owner != nullptr, "gating.importance"}});
  detail::refuse_together(b, "route", {options.experts_choose, ".experts_choose"},
                          {{options.importance.owner != nullptr, ".importance"},
                           {gating.second != gating_options{}.second, ".second"},
                           {options.threshold != router_options{}.threshold, ".threshold"},
                           {options.balance == balance::bias, ".balance = balance::bias"}});
  detail::refuse_together(b, "route", {options.experts_choose && gating.slots.factor != 0, ".experts_choose, .slots"},
                          {{gating.k != gating_options{}.k, ".k"}});
  gating.threshold = options.threshold;
  if (!options.experts_choose) gshard::detail::check_second(b, gating, "route");
  gshard::detail::check_capacity(b, gating.slots, "route", ".slots");
  gshard::detail::check_capacity(b, later, "route", ".evaluation_slots");
  if (later.factor == 0 && later.minimum != 0) b.fail_range("route", ".evaluation_slots.minimum", later.minimum);
  if (later.factor == 0 && later.multiple != 1) b.fail_range("route", ".evaluation_slots.multiple", later.multiple);
  if (!gshard::detail::is_finite(options.scale)) b.fail_range("route", ".scale");
  if (!(options.bias_rate >= 0 && gshard::detail::is_finite(options.bias_rate))) b.fail_range("route", ".bias_rate");
  if (!(options.jitter >= 0 && options.jitter <= 1)) b.fail_range("route", ".jitter");
  if (!(options.gumbel >= 0 && gshard::detail::is_finite(options.gumbel))) b.fail_range("route", ".gumbel");
  if (!(options.z_loss >= 0 && gshard::detail::is_finite(options.z_loss))) b.fail_range("route", ".z_loss");
  const symbol logits = [&] {
    const named_scope named(m, "gate einsum");
    symbol in = x;
    if (noisy && options.jitter > 0 && b.has(x)) {
      const symbol u = gshard::detail::emit_random(b, x.get().dims, x.get().type, false);
      in = x * (1 - options.jitter + 2 * options.jitter * u);
    }
    return full_precision([](symbol t, symbol w) { return einsum<"GSM,ME->GSE">(t, w); }, in, wg);
  }();
  const symbol gates = detail::scores_of(logits, options.score);
  symbol scores = gates;
  if (noisy && options.gumbel > 0 && b.has(logits)) {
    const symbol noise = gshard::detail::emit_gumbel(b, logits.get().dims, logits.get().type);
    scores = detail::scores_of(logits + options.gumbel * noise, options.score);
  }
  if (options.balance == balance::bias) scores = scores + m.variable("bias", "E", init::zeros());
  if (options.groups != 1 || options.groups_per_token != 1) {
    if (options.groups < 1) b.fail_range("route", ".groups", options.groups);
    if (options.groups_per_token < 1) b.fail_range("route", ".groups_per_token", options.groups_per_token);
    if (options.groups_per_token > options.groups)
      b.fail_range("route", ".groups_per_token, .groups", options.groups_per_token, options.groups);
    scores = detail::of_best_groups(scores, options.groups, options.groups_per_token);
  }
  if (b.failed()) return top_k_gating(gates, mask, gating);
  if (scores.id != gates.id) gating.scores = stop_gradient(scores);
  gating.norm = options.norm;
  gating.scale = options.scale;
  gating.importance = options.importance;
  gating.slots = gshard::detail::slots_of(gating);
  if (!options.training) {
    if (gating.second != second_expert::above_threshold) {
      gating.second = second_expert::always;
      gating.threshold = gating_options{}.threshold;
    }
    if (options.evaluation_slots.factor > 0) gating.slots = options.evaluation_slots;
  }
  const gating_result r = options.experts_choose
                              ? expert_choice_gating(gates, mask, {gating.slots, gating.norm, gating.scale, gating.scores})
                              : top_k_gating(gates, mask, gating);
  if (options.balance == balance::loss && !options.experts_choose) m.loss(r.aux);
  if (options.z_loss > 0) {
    const symbol z = logsumexp<"GSE->GS">(logits);
    const symbol tokens = map<[](auto n) { return max(n, decltype(n)(1)); }>(sum(mask));
    const symbol squares = map<[](auto v, auto real) { return real == 0 ? decltype(v)(0) : v * v * real; }>(z, mask);  // 0 even if v is NaN
    m.loss(options.z_loss * (sum(squares) / tokens));
  }
  return r;
}

template <class... Given>
  requires(!gshard::detail::call<3, parameter_scope, symbol, symbol, gating_options, router_options>::fits<Given...>)
constexpr auto route(const Given&... given) {
  static_assert(gshard::detail::accepts<Given...>,
                "gshard: nn::route(m, x, mask, {.k = 2}, {}) takes the first argument of the model, two tensors of a program, and "
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
/// @see route, router_options
template <class = void>
constexpr void update_bias(const parameter_scope& m, here demand, double rate) {
  const line_of_call kept(m.owner());
  const symbol bias = m.variable("bias", "E", init::zeros());
  // Compares E times the demand with the sum: both are exact, and the mean is not.
  constexpr auto towards = [](auto all, auto v) { return decltype(v)(v < all ? 1 : all < v ? -1 : 0); };
  const symbol all = sum(demand), each = scale_by<"E">(demand, 1);
  const symbol direction = map(towards, all, each);
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
template <class = void>
constexpr balance_metrics measure_balance(here demand, symbol overflow) {
  const line_of_call kept(*demand.owner);
  constexpr auto share_of = [](auto v, auto all) { return all == 0 ? decltype(v)(0) : v / all; };
  const symbol total = sum(demand), share = map<share_of>(demand, total);
  const symbol largest = reduce_max<"E->">(demand), mean_demand = mean(demand);
  return {map<[](auto most, auto even) { return even == 0 ? decltype(most)(1) : most / even; }>(largest, mean_demand),
          -sum(map<[](auto p) { return p == 0 ? decltype(p)(0) : p * log(p); }>(share)),
          map<share_of>(overflow, total)};
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

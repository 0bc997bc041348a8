// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// How tokens are routed to experts: the options of top_k_gating, nn::route and nn::moe.

#include <gshard/core/base/math.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/moe/routing/routing.hpp>

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string_view>

namespace gshard { inline namespace v0 {

/// Slots for tokens per expert and group: max(minimum, ceil(factor * S / E)), rounded up to a multiple, at least one. The paper uses
/// capacity{2}.
struct capacity {
  double factor = 2;
  int minimum = 0;   ///< The least number of slots, for small groups.
  int multiple = 1;  ///< The number of slots is a multiple of this: products of some sizes are faster.

  /// S slots: no choice is refused. Buffers have room for all tokens at every expert; products skip empty slots.
  static constexpr capacity unlimited() { return {std::numeric_limits<double>::infinity()}; }
  friend constexpr bool operator==(const capacity&, const capacity&) = default;
};

/// Who chooses, and which second choices are used. Write one of the constants and functions.
struct choice {
  second_expert second = second_expert::always;
  double threshold = 0.5;
  bool experts_choose = false;
  bool depends_on_k = false;

  static const choice automatic;       ///< random_second() without k, as in the paper; top_k with it.
  static const choice top_k;           ///< A token uses the k experts with the largest gates, or scores. Without k, two.
  static const choice sampled_second;  ///< Of two experts, the second is drawn in proportion to the gates of all but the first.
  /// An expert takes the C tokens of a group with the largest gates, or scores (arXiv 2202.09368). All experts have equal loads. A token
  /// may have any number of experts, or none. There is no balance loss.
  static const choice by_experts;
  /// Of two experts, the second is used with probability w / threshold, as in Algorithm 1 of arXiv 2006.16668. Its weight w is
  /// g2 / (g1 + g2) with gate_norm::chosen, else g2.
  static constexpr choice random_second(double threshold = 0.5) { return {second_expert::random, threshold}; }
  /// Of two experts, the second is used if w > threshold.
  static constexpr choice second_above(double threshold) { return {second_expert::above_threshold, threshold}; }
  friend constexpr bool operator==(const choice&, const choice&) = default;
};
inline constexpr choice choice::automatic{second_expert::always, 0.5, false, true};
inline constexpr choice choice::top_k{};
inline constexpr choice choice::sampled_second{second_expert::sampled};
inline constexpr choice choice::by_experts{second_expert::always, 0.5, true};

/// The divisor that makes weights of a token's chosen gates. chosen: their sum, as in Algorithm 1. kept: the sum of the gates whose expert
/// had a slot. off: none.
enum class gate_norm : std::uint8_t { chosen, kept, off };

/// The gates of a token: the softmax of its logits, or the sigmoid of each one.
enum class gate_score : std::uint8_t { softmax, sigmoid };

/// The method that balances the load of experts. Write one of the constants, or bias(rate).
struct balance {
  enum class method : std::uint8_t { loss, bias, off };
  method by = method::loss;
  double rate = 0;

  static const balance loss;  ///< The auxiliary loss of the paper.
  static const balance off;
  /// The variable `bias` [E] is added to the gates for the choice, not for the weights (arXiv 2408.15664). A run changes it by the rate: up
  /// for experts with less demand than the mean, down for experts with more.
  static constexpr balance bias(double rate = 0.001) { return {method::bias, rate}; }
  constexpr bool has_bias() const { return by == method::bias; }
  friend constexpr bool operator==(const balance&, const balance&) = default;
};
inline constexpr balance balance::loss{};
inline constexpr balance balance::off{method::off};

/// Experts in sets of equal size, at least 2. A token uses experts of its best sets: those with the largest sums of their two best scores.
/// It also uses others, if these sets have fewer than k experts.
struct expert_sets {
  int count = 1;
  int per_token = 1;
  friend constexpr bool operator==(const expert_sets&, const expert_sets&) = default;
};

/// How tokens are routed to experts. By default as in Algorithm 1 of arXiv 2006.16668: two experts per token, the second one at random.
/// top_k_gating begins with gates, so it refuses the options that make them: score, balance, sets, jitter, gumbel and z_loss.
struct routing_options {
  int k = 0;          ///< Experts per token; if experts choose, on average. 0: two.
  capacity slots{0};  ///< Slots per expert and group. Factor 0: k, which is enough if all experts take equally many tokens.
  struct choice choice = choice::automatic;    ///< Who chooses. The rules of second experts are for two experts per token.
  gate_score score = gate_score::softmax;
  gate_norm norm = gate_norm::chosen;          ///< Weights sum to `scale`, or are gates times `scale`.
  double scale = 1;                            ///< The scale of the weights.
  struct balance balance = balance::loss;
  expert_sets sets{};
  double jitter = 0;                           ///< The router's input is multiplied by U(1 - jitter, 1 + jitter).
  double gumbel = 0;                           ///< The choice uses logits plus this times Gumbel noise.
  double z_loss = 0;                           ///< Adds this times the mean of logsumexp(logits)^2 to the auxiliary losses.
  bool training = true;                        ///< False: no noise, no second expert is random, and the bias stays.
  capacity evaluation_slots{0};                ///< Slots per expert without training. Factor 0: as in training.
  symbol importance{};                         ///< [G,S]: tokens take slots in the order of decreasing importance, not of the group.
  symbol scores{};  ///< Of top_k_gating, [G,S,E]: choose in place of the gates. They have no gradient.
};

namespace detail {
/// Whether an option is set, and its name.
struct set_option {
  bool is_set;
  std::string_view name;
};
/// The program fails if an option is set together with one of `others`.
constexpr void refuse_together(builder& b, std::string_view verb, set_option one, std::initializer_list<set_option> others) {
  for (const set_option& other : others)
    if (one.is_set && other.is_set) b.fail(fault::options_conflict, verb, tensor_name(one.name).append(" and ").append(other.name).view());
}

/// The program fails if a capacity, an option or an argument of the verb, is out of range.
constexpr void check_capacity(builder& b, const capacity& c, std::string_view verb, std::string_view option) {
  const auto name_of = [&](std::string_view member) { return tensor_name(option).append(member); };
  if (!(c.factor >= 0)) b.fail_range(verb, name_of(".factor").view());
  if (c.minimum < 0) b.fail_range(verb, name_of(".minimum").view(), c.minimum);
  if (c.multiple < 1) b.fail_range(verb, name_of(".multiple").view(), c.multiple);
}

/// The program fails if options are out of range, or one has no effect.
constexpr void check_routing(builder& b, const routing_options& o, std::string_view verb) {
  const capacity& later = o.evaluation_slots;
  if (o.k < 0) b.fail_range(verb, ".k", o.k);
  check_capacity(b, o.slots, verb, ".slots");
  check_capacity(b, later, verb, ".evaluation_slots");
  if (later.factor == 0 && later.minimum != 0) b.fail_range(verb, ".evaluation_slots.minimum", later.minimum);
  if (later.factor == 0 && later.multiple != 1) b.fail_range(verb, ".evaluation_slots.multiple", later.multiple);
  if (!(o.choice.threshold > 0)) b.fail_range(verb, ".choice.threshold");
  if (!is_finite(o.scale)) b.fail_range(verb, ".scale");
  if (!(o.balance.rate >= 0 && is_finite(o.balance.rate))) b.fail_range(verb, ".balance.rate");
  if (!(o.jitter >= 0 && o.jitter <= 1)) b.fail_range(verb, ".jitter");
  if (!(o.gumbel >= 0 && is_finite(o.gumbel))) b.fail_range(verb, ".gumbel");
  if (!(o.z_loss >= 0 && is_finite(o.z_loss))) b.fail_range(verb, ".z_loss");
  if (o.sets.count < 1) b.fail_range(verb, ".sets.count", o.sets.count);
  if (o.sets.per_token < 1) b.fail_range(verb, ".sets.per_token", o.sets.per_token);
  if (o.sets.per_token > o.sets.count) b.fail_range(verb, ".sets.per_token, .sets.count", o.sets.per_token, o.sets.count);
  refuse_together(b, verb, {o.choice.second != second_expert::always, ".choice of a second expert"},
                  {{o.k != 0 && o.k != 2, ".k other than 2"}});
  const set_option by_experts{o.choice.experts_choose, ".choice by_experts"};
  refuse_together(b, verb, by_experts, {{o.importance.owner != nullptr, ".importance"}, {o.balance.has_bias(), ".balance bias"}});
  refuse_together(b, verb, {o.choice.experts_choose && o.slots.factor != 0, ".choice by_experts, .slots"}, {{o.k != 0, ".k"}});
}
/// The program fails if options are set that make gates.
constexpr void check_of_gates(builder& b, const routing_options& o, std::string_view verb) {
  constexpr routing_options unset{};
  refuse_together(b, verb, {true, "gates"},
                  {{o.score != unset.score, ".score"},
                   {o.balance != unset.balance, ".balance"},
                   {o.sets != unset.sets, ".sets"},
                   {o.jitter != 0, ".jitter"},
                   {o.gumbel != 0, ".gumbel"},
                   {o.z_loss != 0, ".z_loss"}});
}

/// The options with values in place of defaults, and in evaluation without those of training.
constexpr routing_options in_effect(routing_options o) {
  if (o.choice.depends_on_k) o.choice = o.k == 0 ? choice::random_second() : choice::top_k;
  if (o.k == 0) o.k = 2;
  if (o.slots.factor == 0) o.slots.factor = o.k;
  if (o.training) return o;
  if (o.choice.second == second_expert::random || o.choice.second == second_expert::sampled) o.choice = choice::top_k;
  if (o.evaluation_slots.factor > 0) o.slots = o.evaluation_slots;
  o.jitter = o.gumbel = 0;
  return o;
}
}  // namespace detail

}}  // namespace gshard::v0

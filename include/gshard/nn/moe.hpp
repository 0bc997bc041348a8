// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The mixture-of-experts layer of GShard (arXiv 2006.16668), with k experts per token, and experts in groups.

#include <gshard/base/fixed_string.hpp>
#include <gshard/ir/spec.hpp>
#include <gshard/trace/einsum.hpp>
#include <gshard/trace/expert_groups.hpp>
#include <gshard/trace/expert_replicas.hpp>
#include <gshard/trace/gating.hpp>
#include <gshard/trace/map.hpp>
#include <gshard/trace/named_scope.hpp>
#include <gshard/trace/parameter_scope.hpp>
#include <gshard/trace/rows.hpp>

namespace gshard { inline namespace v0 { namespace nn {

/// Settings of a mixture-of-experts layer. They belong to the model, so none depends on the number of devices.
struct moe_options {
  capacity places{0};                            ///< Slots per expert. Factor 0: k. @see gating_options
  second_expert second = second_expert::random;  ///< With k = 2.
  int k = 2;                                     ///< Experts per token.
  int expert_groups = 1;                         ///< A token is sent once to each group that has one of its experts.
  capacity rows{0};                              ///< Rows per expert group. Factor 0: a row for each token. @see send_to_expert_groups
  bool replicas = false;                         ///< Experts have replicas, which placed_experts moves. @see send_to_replicas
  capacity replica_places{0};                    ///< Slots per replica. Factor 0: as many as an expert.
};

struct moe_result {
  symbol y;         ///< [G,S,M]
  symbol load;      ///< [E] tokens per expert
  symbol overflow;  ///< scalar: choices refused because an expert, or an expert group, was full
};

/// moe<"expert">(m, x, mask, options): the sparsely gated layer of arXiv 2006.16668, Algorithm 2: y_s = sum_e G_{s,e} wo_e relu(wi_e x_s)
/// with at most k experts per token. Adds the auxiliary loss to the model's. Parameters: wg [M,E]; wi [E,M,F] and wo [E,F,M], whose
/// experts are sharded over the axes.
///
/// moe<"node", "expert">(m, x, mask, {.k = 8, .expert_groups = N}): experts in N groups, sharded over the first axis; the experts of a
/// group over the second axis, if there is one. The first axis is the one between nodes. Parameters: wi [N,E/N,M,F] and wo [N,E/N,F,M].
/// Without overflow of groups, the result is that of one group, except for the order of sums. @see combine_from_groups
///
/// moe<"expert">(m, x, mask, {.replicas = true}): R replicas of E experts, sharded over the axes. The variable expert_of [R] says which
/// expert each one is. The result is that of the layer without replicas, except for the order of sums. @see placed_experts
/// Shapes: x [G,S,M], mask [G,S], 0 at padding -> see `moe_result`.
/// Communicates: if token groups are sharded over the same axes, one all_to_all to the experts and one back; with expert groups, one per
/// axis each way.
/// Compile time: ranks and dims; that the mesh has the axes.
/// Throws: nothing.
/// @see top2_gating, top_k_gating, send_to_expert_groups, send_to_replicas, moe_options
template <fixed_string Axis, fixed_string InnerAxis = "">
constexpr moe_result moe(const parameter_scope& m, symbol x, symbol mask, moe_options options = {}) {
  constexpr bool one_axis = InnerAxis.view().empty();
  constexpr label inner = one_axis ? none : label(InnerAxis);
  constexpr label all_axes = [] {
    if constexpr (one_axis) return label(Axis);
    else return axes<Axis, InnerAxis>;
  }();
  const bool grouped = options.expert_groups != 1;
  builder& b = m.owner();
  const symbol wg = m.param("wg", "ME", init::fan_in("M"));
  symbol wi = b.nothing(), wo = b.nothing(), expert_of = b.nothing();
  if (options.replicas) {
    if (grouped) b.fail(fault::bad_range, "moe", {}, options.expert_groups);
    expert_of = replicas_of_experts(m, "R", "E");
    wi = replica_param(m, expert_of, "wi", "RMF", P<all_axes, none, none>{}, init::fan_in("M"));
    wo = replica_param(m, expert_of, "wo", "RFM", P<all_axes, none, none>{}, init::fan_in("F"));
  } else if (!grouped) {
    wi = m.param("wi", "EMF", P<all_axes, none, none>{}, init::fan_in("M"));
    wo = m.param("wo", "EFM", P<all_axes, none, none>{}, init::fan_in("F"));
  }
  const named_scope gate_other(m, "gate other");
  const auto gate_einsum = [&](auto product) {
    const named_scope named(m, "gate einsum");
    return product();
  };
  const symbol logits = gate_einsum([&] { return full_precision([](symbol t, symbol w) { return einsum<"GSM,ME->GSE">(t, w); }, x, wg); });
  const capacity places = detail::places_of({options.k, options.places});
  gating_result route = options.k == 2 ? top2_gating(softmax(logits), mask, places, options.second)
                                       : top_k_gating(softmax(logits), mask, {options.k, places});
  if (options.replicas) route = send_to_replicas(route, expert_of, options.replica_places);
  m.loss(route.aux);
  if (!grouped) {
    const symbol in = gate_einsum([&] { return einsum<"GSEC,GSM->EGCM">(route.dispatch, x); });
    const symbol out = [&] {
      const named_scope experts(m, "MoE feed-forward");
      return einsum<"EGCF,EFM->GECM">(relu(einsum<"EGCM,EMF->EGCF">(in, wi)), wo);
    }();
    const symbol y = gate_einsum([&] { return einsum<"GSEC,GECM->GSM">(route.combine, out); });
    return {y, sum<"GE->E">(route.load), sum(route.overflow)};
  }
  const expert_group_routing groups =
      gate_einsum([&] { return send_to_expert_groups<Axis>(route, x, options.expert_groups, options.rows); });
  const int M = b.bound_dim('M'), F = b.bound_dim('F');
  const auto of_experts = [&](int from, int to) { return detail::route::dims({groups.group_dim, groups.expert_dim, from, to}); };
  wi = m.param_of_dims("wi", of_experts(M, F), P<label(Axis), inner, none, none>{}, init::fan_in("M"));
  wo = m.param_of_dims("wo", of_experts(F, M), P<label(Axis), inner, none, none>{}, init::fan_in("F"));
  const symbol in = gate_einsum([&] { return dispatch_in_groups(groups); });
  const symbol out = [&] {
    const named_scope experts(m, "MoE feed-forward");
    return einsum<"NEGCF,NEFM->NEGCM">(relu(einsum<"NEGCM,NEMF->NEGCF">(in, wi)), wo);
  }();
  const symbol y = gate_einsum([&] { return combine_from_groups(groups, out); });
  return {y, sum<"GE->E">(route.load), sum(route.overflow) + sum(groups.overflow)};
}

}}}  // namespace gshard::v0::nn

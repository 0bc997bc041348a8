// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The mixture-of-experts layer of GShard (arXiv 2006.16668), with top-2 gating.

#include <gshard/base/fixed_string.hpp>
#include <gshard/ir/spec.hpp>
#include <gshard/trace/einsum.hpp>
#include <gshard/trace/gating.hpp>
#include <gshard/trace/map.hpp>
#include <gshard/trace/named_scope.hpp>
#include <gshard/trace/parameter_scope.hpp>
#include <gshard/trace/rows.hpp>

namespace gshard { inline namespace v0 { namespace nn {

/// Settings of a mixture-of-experts layer. They belong to the model, so none depends on the number of devices.
struct moe_options {
  capacity places{2};
  second_expert second = second_expert::random;
};

struct moe_result {
  symbol y;         ///< [G,S,M]
  symbol load;      ///< [E] tokens per expert
  symbol overflow;  ///< scalar: choices refused because an expert was full
};

/// moe<"expert">(m, x, mask, options): the sparsely gated layer of arXiv 2006.16668, Algorithm 2: y_s = sum_e G_{s,e} wo_e relu(wi_e x_s)
/// with at most two experts per token. Adds the auxiliary loss to the model's. Parameters: wg [M,E]; wi [E,M,F] and wo [E,F,M], whose
/// experts are sharded over `ExpertAxis`.
/// Shapes: x [G,S,M], mask [G,S], 0 at padding -> see `moe_result`.
/// Communicates: if groups are sharded over the same axis, one all_to_all to the experts and one back.
/// Compile time: ranks and dims; that the mesh has the axis.
/// Throws: nothing.
/// @see top2_gating, moe_options
template <fixed_string ExpertAxis>
constexpr moe_result moe(const parameter_scope& m, symbol x, symbol mask, moe_options options = {}) {
  const symbol wg = m.param("wg", "ME", init::fan_in("M"));
  const symbol wi = m.param("wi", "EMF", P<label(ExpertAxis), none, none>{}, init::fan_in("M"));
  const symbol wo = m.param("wo", "EFM", P<label(ExpertAxis), none, none>{}, init::fan_in("F"));
  const named_scope gate_other(m, "gate other");
  const auto gate_einsum = [&](auto product) {
    const named_scope named(m, "gate einsum");
    return product();
  };
  const symbol logits = gate_einsum([&] { return full_precision([](symbol t, symbol w) { return einsum<"GSM,ME->GSE">(t, w); }, x, wg); });
  const gating_result route = top2_gating(softmax(logits), mask, options.places, options.second);
  m.loss(route.aux);
  const symbol in = gate_einsum([&] { return einsum<"GSEC,GSM->EGCM">(route.dispatch, x); });
  const symbol out = [&] {
    const named_scope experts(m, "MoE feed-forward");
    return einsum<"EGCF,EFM->GECM">(relu(einsum<"EGCM,EMF->EGCF">(in, wi)), wo);
  }();
  const symbol y = gate_einsum([&] { return einsum<"GSEC,GECM->GSM">(route.combine, out); });
  return {y, sum<"GE->E">(route.load), sum(route.overflow)};
}

}}}  // namespace gshard::v0::nn

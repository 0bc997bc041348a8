// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/grad/differentiate.hpp>
#include <gshard/moe/routing/dropless.hpp>
#include <gshard/moe/routing/expert_groups.hpp>
#include <gshard/moe/routing/gating.hpp>
#include <gshard/moe/routing/grouped_product.hpp>
#include <gshard/moe/routing/routing.hpp>
#include <gshard/ops/random/random.hpp>
#include <gshard/train/gradient_wire.hpp>

#include "../../tracing.hpp"

#include <array>

// The operations of the gradients. Programs that run check their numbers.
namespace gs = gshard;
namespace op = gs::op;
using gs::builder, gs::einsum, gs::fault, gs::symbol;
using tracing::count, tracing::fails, tracing::has_dims, tracing::input;

namespace {

// Choices have no gradient, but their weights do: dispatch and combine are each other's gradients.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol gates = input(b, "GSE"), x = input(b, "GSM");
  const gs::gating_result r = gs::top_k_gating(gates);
  const symbol y = einsum<"GSEC,EGCM->GSM">(r.combine, einsum<"GSEC,GSM->EGCM">(r.dispatch, x));
  const gs::list<symbol> d = gs::gradients(gs::sum(y), std::array{gates, x});
  return has_dims(d[0], "GSE") && has_dims(d[1], "GSM") && count(b.program, op::top_k_gating_grad) == 1 &&
         count(b.program, op::combine_weight_grad) == 1 && count(b.program, op::dispatch) == 2 && count(b.program, op::combine) == 2;
}));
// Through groups of experts, and through rows: the gradient of rows is one more grouped product.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol gates = input(b, "GSE"), x = input(b, "GSM");
  const gs::expert_group_routing r = gs::send_to_expert_groups(gs::top_k_gating(gates), x, 2);
  const gs::list<symbol> d = gs::gradients(gs::sum(gs::combine_from_groups(r, gs::dispatch_in_groups(r))), std::array{gates, x});
  return has_dims(d[0], "GSE") && has_dims(d[1], "GSM") && count(b.program, op::expert_group_slots_grad) == 1;
}));
static_assert(tracing::holds([](builder& b, auto& m) {
  const symbol gates = input(b, "GSE"), x = input(b, "GSM");
  const gs::expert_row_routing r = gs::send_rows(gs::top_k_gating(gates), x, 2);
  const symbol w = gs::expert_param(m, r, "w", "MM", gs::init::zeros());
  const gs::list<symbol> d = gs::gradients(gs::sum(gs::combine_rows(r, gs::grouped_product(r, r.rows, w))), std::array{gates, x, w});
  return has_dims(d[0], "GSE") && has_dims(d[1], "GSM") && d[2].get().dims == w.get().dims &&
         count(b.program, op::grouped_product) == 2 && count(b.program, op::grouped_weight_grad) == 1;
}));
// The trait marks the operations of a mixture of experts.
static_assert(gs::traits(op::top_k_gating).routes && gs::traits(op::grouped_product).routes && gs::traits(op::combine_weight_grad).routes);
static_assert(!gs::traits(op::random).routes && !gs::traits(op::feedback).routes && !gs::traits(op::einsum).routes);

}  // namespace

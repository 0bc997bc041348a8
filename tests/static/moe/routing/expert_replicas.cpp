// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/moe/routing/expert_replicas.hpp>

#include <gshard/moe/layer/moe.hpp>
#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

#include "../../tracing.hpp"

#include <tuple>

namespace gs = gshard;
namespace op = gs::op;
using gs::builder, gs::dtype, gs::fault, gs::none, gs::P, gs::symbol;
using tracing::fails, tracing::has_dims, tracing::input;

namespace {

constexpr gs::init start = gs::init::fan_in("M");

// The variable is replicated. Weights and their optimizer state refer to it, if they have its rows.
static_assert(tracing::holds([](builder& b, auto& m) {
  const symbol expert_of = gs::replicas_of_experts(m, "R", "E");
  const symbol w = gs::replica_param(m, expert_of, "w", "RMF", P<"x", none, none>{}, start);
  m.state("all.", w);
  gs::short_list columns;
  columns.push_back(1);
  m.state("columns.", w, columns);
  const auto& p = b.program.parameters;
  return expert_of.get().type == dtype::i32 && has_dims(expert_of, "R") && !p[0].trainable && !p[0].of_optimizer && p[0].placed_by == -1 &&
         p[0].copies_of == b.bound_dim('E') && p[1].placed_by == 0 && p[1].copies_of == b.bound_dim('E') && p[2].placed_by == 0 &&
         p[3].placed_by == -1;
}));
// Routing to replicas: as many slots as an expert has, or fewer.
static_assert(tracing::holds([](builder& b, auto& m) {
  const symbol expert_of = gs::replicas_of_experts(m, "R", "E");
  const gs::gating_result gating = gs::top_k_gating(input(b, "GSE"), {.k = 4});
  const gs::gating_result all = gs::send_to_replicas(gating, expert_of), few = gs::send_to_replicas(gating, expert_of, {4.5});
  return has_dims(all.combine, "GSRC") && all.combine.get().dims[3] == gating.combine.get().dims[3] &&
         all.overflow.id == gating.overflow.id && has_dims(few.dispatch, "GSRC") &&
         few.dispatch.get().dims[3] != gating.combine.get().dims[3] && has_dims(few.overflow, "G") && few.load.id == gating.load.id;
}));

// The text of the dims may state the sharding. Faults have the line of the declaration.
static_assert(tracing::holds([](builder&, auto& m) {
  const symbol of = gs::replicas_of_experts(m, "R", "E");
  return gs::replica_param(m, of, "w", "R@x,M,F", gs::init::zeros()).get().layout.dim_of(0) == 0;
}));
static_assert(tracing::problem_of([](builder&, auto& m) {
                const symbol of = gs::replicas_of_experts(m, "R", "E");
                gs::replica_param(m, of, "w", "R@z,M,F", gs::init::zeros());
              }).line == __LINE__ - 1);
static_assert(fails(fault::dims_differ, "replica_param", [](builder&, auto& m) {
  gs::replica_param(m, gs::replicas_of_experts(m, "R", "E"), "w", "EM", P<"x", none>{}, start);
}));
static_assert(fails(fault::dims_differ, "replica_param", [](builder& b, auto& m) {
  gs::replica_param(m, input(b, "R", dtype::i32), "w", "RM", P<"x", none>{}, start);
}));
static_assert(tracing::out_of_range("send_to_replicas", "slots.factor", {}, [](builder& b, auto& m) {
  gs::send_to_replicas(gs::top_k_gating(input(b, "GSE")), gs::replicas_of_experts(m, "R", "E"), {-1});
}));
static_assert(tracing::wrong_type("send_to_replicas", 1, "f32", "i32", [](builder& b, auto&) {
  gs::send_to_replicas(gs::top_k_gating(input(b, "GSE")), input(b, "R"));
}));
static_assert(fails(fault::wrong_gating, "send_to_replicas", [](builder& b, auto& m) {  // a replica is no expert
  const symbol expert_of = gs::replicas_of_experts(m, "R", "E");
  gs::send_to_replicas(gs::send_to_replicas(gs::top_k_gating(input(b, "GSE")), expert_of), expert_of);
}));
static_assert(fails(fault::rank_mismatch, "send_to_replicas", [](builder& b, auto&) {
  gs::send_to_replicas(gs::top_k_gating(input(b, "GSE")), input(b, "RS", dtype::i32));
}));

// A layer with replicas has the same all_to_alls as one without. Its gradients have one more all_reduce per weight.
template <bool Replicas>
inline constexpr auto step = [](auto& m, auto x, auto mask, auto rate) {
  constexpr gs::experts experts = Replicas ? gs::experts::with_replicas() : gs::experts::in_slots();
  const auto r = gs::nn::moe<"expert">(m, x, mask, {.routing = {.slots = {4}}, .experts = experts});
  const auto loss = gs::mean(r.y * r.y);
  gs::adam{}.minimize(m, m.objective(loss, 0.1), rate);
  return std::tuple{loss, r.load};
};
template <bool Replicas>
using program = gs::program<step<Replicas>, gs::mesh<gs::axis<"expert">>, gs::in<"GSM", P<"expert", none, none>>,
                            gs::in<"GS", P<"expert", none>>, gs::in<"">>;
static_assert(program<true>::plan.count(op::all_to_all) == program<false>::plan.count(op::all_to_all));
static_assert(program<true>::plan.count(op::all_reduce) == program<false>::plan.count(op::all_reduce) + 2);
static_assert(program<true>::plan.collectives() == program<false>::plan.collectives() + 2);
// The same with a data axis: no device gathers the gradients of all experts.
template <bool Replicas>
using on_two_axes = gs::program<step<Replicas>, gs::mesh<gs::axis<"data">, gs::axis<"expert">>,
                                gs::in<"GSM", P<gs::axes<"data", "expert">, none, none>>, gs::in<"GS", P<gs::axes<"data", "expert">, none>>,
                                gs::in<"">>;
static_assert(on_two_axes<true>::plan.count(op::all_gather) == 0);
static_assert(on_two_axes<true>::plan.collectives() == on_two_axes<false>::plan.collectives() + 2);

}  // namespace

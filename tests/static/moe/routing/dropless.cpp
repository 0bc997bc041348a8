// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/moe/routing/dropless.hpp>

#include <gshard/moe/layer/moe.hpp>
#include <gshard/moe/routing/chunks.hpp>
#include <gshard/moe/routing/expert_replicas.hpp>
#include <gshard/moe/routing/routing.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
namespace route = gs::detail::route;
namespace op = gs::op;
using gs::builder, gs::dtype, gs::fault, gs::none, gs::P, gs::symbol;
using tracing::fails, tracing::has_dims, tracing::input;

namespace {

constexpr gs::expert_row_routing sent(builder& b, int groups, gs::capacity rows = {0}, int k = 4) {
  const auto gating = gs::top_k_gating(input(b, "GSE"), {.k = k, .slots = gs::capacity::unlimited()});
  return gs::send_rows(gating, input(b, "GSM"), groups, rows);
}
constexpr gs::dim dim_at(const builder& b, int row) { return b.program.dims[std::size_t(row)]; }

// The weights of experts, with and without a sharding of their own dims.
static_assert(tracing::holds([](builder& b, auto& m) {
  const auto r = sent(b, 2);
  const symbol w = gs::expert_param(m, r, "w", "M,F@y", gs::init::zeros()), bias = gs::expert_param(m, r, "b", "F", gs::init::zeros());
  return w.rank() == 4 && w.get().layout.dim_of(1) == 3 && bias.rank() == 3 && bias.get().layout.open == 0;
}));
static_assert(fails(fault::unknown_letter, "w", [](builder& b, auto& m) {
  gs::expert_param(m, sent(b, 2), "w", "M,F", P<none, none>{}, gs::init::zeros());
}));
static_assert(fails(fault::unknown_letter, "w", [](builder& b, auto& m) {
  gs::expert_param(m, sent(b, 2), "w", "ABCDEFH", gs::init::zeros());
}));
static_assert(tracing::problem_of([](builder& b, auto& m) {
                gs::expert_param(m, sent(b, 2), "w", "M,F@z", gs::init::zeros());
              }).line == __LINE__ - 1);

// A row for every choice, or fewer: ceil(factor * S / N).
static_assert(tracing::holds([](builder& b, auto&) {
  const gs::expert_row_routing all = sent(b, 2), more_than_all = sent(b, 2, {100}), few = sent(b, 4, {1.5});
  return all.row_dim == more_than_all.row_dim && dim_at(b, all.row_dim).number == 8 && dim_at(b, few.row_dim).number == 3 &&
         dim_at(b, few.row_dim).divisor == 2 && all.count.get().type == dtype::i32 && has_dims(all.overflow, "G") &&
         all.rows.rank() == 4 && all.count.rank() == 3 && has_dims(gs::combine_rows(few, few.rows), "GSM");
}));
// With a known number of experts, a token has at most as many rows in a group as the group has experts.
static_assert(tracing::holds([](builder& b, auto&) {
  b.options.known.set('E', 8);
  return dim_at(b, sent(b, 4).row_dim).number == 8 && dim_at(b, sent(b, 1).row_dim).number == 4;
}));
static_assert(tracing::holds([](builder& b, auto&) {
  const gs::dim rows = dim_at(b, sent(b, 4, {.factor = 1.5, .minimum = 4, .multiple = 8}).row_dim);
  return rows.what == gs::dim::kind::rounded && rows.number == 4 && rows.divisor == 8;
}));
// Rows are assigned for all tokens and expert groups at once. Afterwards token groups, expert groups and dims of the experts may be
// sharded.
static_assert(tracing::holds([](builder& b, auto& m) {
  const gs::expert_row_routing r = sent(b, 2);
  const symbol y = gs::grouped_product(r, r.rows, gs::expert_param(m, r, "w", "MF", gs::init::zeros()));
  const gs::sharding_rule product = b.program.nodes.back().rule;
  for (const gs::node& n : b.program.nodes)
    if (n.kind == op::expert_rows)
      return n.rule.is_blocked(route::expert_group) && n.rule.is_blocked(route::token) && !n.rule.is_blocked(route::group) &&
             !product.is_blocked(route::expert_group) && !product.is_blocked(route::group) && !product.is_blocked(route::hidden) &&
             product.is_blocked(route::expert) && product.is_blocked(route::place) && y.rank() == 4;
  return false;
}));

static_assert(tracing::out_of_range("send_rows", "groups", {0}, [](builder& b, auto&) { sent(b, 0); }));
static_assert(tracing::out_of_range("send_rows", "rows.factor", {}, [](builder& b, auto&) { sent(b, 2, {-1}); }));
static_assert(fails(fault::rank_mismatch, "send_rows", [](builder& b, auto&) {
  gs::send_rows(gs::top_k_gating(input(b, "GSE")), input(b, "GS"), 2);
}));
static_assert(fails(fault::dims_differ, "send_rows", [](builder& b, auto&) {
  gs::send_rows(gs::top_k_gating(input(b, "GSE")), input(b, "GMS"), 2);
}));
static_assert(fails(fault::wrong_gating, "send_rows", [](builder& b, auto&) {
  gs::gating_result r = gs::top_k_gating(input(b, "GSE"));
  r.combine = input(b, "GSEC");  // not from a gating
  gs::send_rows(r, input(b, "GSM"), 2);
}));
static_assert(fails(fault::wrong_gating, "send_rows", [](builder& b, auto&) {  // as many choices as experts
  gs::send_rows(gs::top_k_gating(input(b, "GSE"), {.choice = gs::choice::by_experts}), input(b, "GSM"), 2);
}));
static_assert(fails(fault::wrong_gating, "send_rows", [](builder& b, auto&) {  // the same with a known number of experts
  const symbol gates{&b, b.add_value(route::dims({b.bound_dim('G'), b.bound_dim('S'), b.fixed_dim(4)}), dtype::f32)};
  gs::send_rows(gs::top_k_gating(gates, {.choice = gs::choice::by_experts}), input(b, "GSM"), 2);
}));
static_assert(fails(fault::wrong_gating, "send_rows", [](builder& b, auto& m) {  // weights of replicas would differ
  const symbol expert_of = gs::replicas_of_experts(m, "R", "E");
  gs::send_rows(gs::send_to_replicas(gs::top_k_gating(input(b, "GSE")), expert_of), input(b, "GSM"), 2);
}));
static_assert(fails(fault::wrong_gating, "send_rows", [](builder& b, auto&) {  // slots in chunks
  gs::send_rows(gs::chunk_of(gs::top_k_gating(input(b, "GSE")), 0, 2), input(b, "GSM"), 2);
}));
static_assert(fails(fault::rank_mismatch, "grouped_product", [](builder& b, auto& m) {
  const gs::expert_row_routing r = sent(b, 2);
  gs::grouped_product(r, r.rows, gs::expert_param(m, r, "b", "M", gs::init::zeros()));
}));
static_assert(fails(fault::rank_mismatch, "grouped_product", [](builder& b, auto& m) {
  const gs::expert_row_routing r = sent(b, 2);
  gs::grouped_product(r, input(b, "GSM"), gs::expert_param(m, r, "w", "MF", gs::init::zeros()));
}));
static_assert(fails(fault::dims_differ, "grouped_product", [](builder& b, auto& m) {
  const gs::expert_row_routing r = sent(b, 2);
  gs::grouped_product(r, r.rows, gs::expert_param(m, r, "w", "FM", gs::init::zeros()));
}));
static_assert(fails(fault::dims_differ, "grouped_product", [](builder& b, auto& m) {  // rows of other groups
  const gs::expert_row_routing r = sent(b, 2);
  gs::grouped_product(r, r.rows, gs::expert_param(m, sent(b, 4), "w", "MF", gs::init::zeros()));
}));
static_assert(fails(fault::dims_differ, "add_to_rows", [](builder& b, auto& m) {
  const gs::expert_row_routing r = sent(b, 2);
  gs::add_to_rows(r, r.rows, gs::expert_param(m, r, "b", "F", gs::init::zeros()));
}));
static_assert(fails(fault::dims_differ, "combine_rows", [](builder& b, auto&) { gs::combine_rows(sent(b, 2), sent(b, 4).rows); }));
static_assert(fails(fault::rank_mismatch, "combine_rows", [](builder& b, auto&) { gs::combine_rows(sent(b, 2), input(b, "GSM")); }));

using gs::experts;
// Options of the layer that conflict: the fault names both.
constexpr bool conflict(std::string_view both, const gs::nn::moe_options& options) {
  return tracing::conflicts("moe", both, [&](builder& b, auto& m) { gs::nn::moe<"x">(m, input(b, "GSM"), input(b, "GS"), options); });
}
static_assert(conflict(".experts dropless and .routing.slots", {.routing = {.slots = {2}}, .experts = experts::dropless()}));
static_assert(conflict(".experts dropless and .routing.evaluation_slots",
                       {.routing = {.evaluation_slots = {2}}, .experts = experts::dropless()}));
static_assert(conflict(".experts dropless and .routing.choice by_experts",
                       {.routing = {.choice = gs::choice::by_experts}, .experts = experts::dropless()}));
static_assert(conflict(".experts dropless and .routing.slots", {.routing = {.slots = {0, 8}}, .experts = experts::dropless()}));
static_assert(conflict("one expert group and .experts rows", {.experts = experts::in_groups(1, {1.5})}));
static_assert(conflict("one expert group and .experts rows", {.experts = experts::in_groups(1, {0, 8})}));
constexpr bool out_of_range(std::string_view option, std::initializer_list<int> values, const gs::nn::moe_options& options) {
  return tracing::out_of_range("moe", option, values,
                               [&](builder& b, auto& m) { gs::nn::moe<"x">(m, input(b, "GSM"), input(b, "GS"), options); });
}
static_assert(out_of_range(".experts rows.minimum", {-8}, {.experts = experts::in_groups(2, {0, -8})}));
static_assert(out_of_range(".experts slots.multiple", {0}, {.experts = experts::with_replicas({0, 0, 0})}));
static_assert(tracing::conflicts("moe", ".experts dropless and .routing.importance", [](builder& b, auto& m) {
  gs::nn::moe<"x">(m, input(b, "GSM"), input(b, "GS"), {.routing = {.importance = input(b, "GS")}, .experts = experts::dropless()});
}));
static_assert(conflict(".experts dropless and .chunks", {.experts = experts::dropless(), .chunks = 2}));
static_assert(tracing::conflicts("moe", ".experts dropless and a second mesh axis", [](builder& b, auto& m) {
  gs::nn::moe<"x", "y">(m, input(b, "GSM"), input(b, "GS"), {.experts = experts::dropless(2)});
}));

}  // namespace

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/moe/routing/expert_groups.hpp>

#include <gshard/moe/routing/chunks.hpp>
#include <gshard/moe/routing/expert_replicas.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
namespace route = gs::detail::route;
namespace op = gs::op;
using gs::builder, gs::dtype, gs::fault, gs::symbol;
using tracing::fails, tracing::has_dims, tracing::input;

namespace {

// The expected number of groups: all experts in one group, one expert per group, and the values of the uniform distribution in between.
constexpr bool near(double a, double b) { return a - b < 1e-9 && b - a < 1e-9; }
static_assert(near(gs::expected_expert_groups(32, 1, 8), 1) && near(gs::expected_expert_groups(8, 8, 3), 3));
static_assert(near(gs::expected_expert_groups(4, 2, 2), 2 * (1 - 1.0 / 6)) && near(gs::expected_expert_groups(4, 2, 3), 2));
// Impossible numbers of groups or choices give NaN, which no capacity accepts.
constexpr bool is_nan(double x) { return x != x; }
static_assert(is_nan(gs::expected_expert_groups(8, 0, 2)) && is_nan(gs::expected_expert_groups(8, 3, 2)));
static_assert(is_nan(gs::expected_expert_groups(8, 2, 9)) && !is_nan(gs::expected_expert_groups(8, 2, 8)));
// Bytes saved by sending a token once to a node, with many experts: 25 % and 12.5 % for k = 2 on 2 and 4 nodes, 75, 55 and 34 % for k = 8
// on 2, 4 and 8.
constexpr bool saves(int groups, int k, double share) {
  const double saved = 1 - gs::expected_expert_groups(1 << 16, groups, k) / k;
  return saved - share < 0.005 && share - saved < 0.005;
}
static_assert(saves(2, 2, 0.25) && saves(4, 2, 0.125) && saves(2, 8, 0.75) && saves(4, 8, 0.55) && saves(8, 8, 0.344));

constexpr gs::expert_group_routing sent(builder& b, int groups, gs::capacity rows = {0}) {
  return gs::send_to_expert_groups(gs::top_k_gating(input(b, "GSE"), {.k = 4}), input(b, "GSM"), groups, rows);
}

// A row for every token, or fewer. The inputs of the experts have the slots of the gating. The results belong to tokens.
static_assert(tracing::holds([](builder& b, auto&) {
  const gs::expert_group_routing all = sent(b, 2), few = sent(b, 4, {1.5}), more_than_all = sent(b, 2, {3});
  const gs::dim rows = b.program.dims[std::size_t(few.row_dim)], experts = b.program.dims[std::size_t(few.expert_dim)];
  const symbol in = gs::dispatch_in_groups(few);
  return all.row_dim == input(b, "S").get().dims[0] && more_than_all.row_dim == all.row_dim && rows.number == 3 && rows.divisor == 2 &&
         b.known_extent(few.group_dim) == 4 && experts.number == 1 && in.rank() == 5 && few.slot.get().type == dtype::i32 &&
         has_dims(gs::combine_from_groups(few, in), "GSM") && has_dims(few.overflow, "G");
}));
// Rows: groups of tokens may be sharded, and groups of experts on the devices of the rows. Slots are computed for all expert groups at
// once.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol in = gs::dispatch_in_groups(sent(b, 2));
  const gs::sharding_rule inner = b.program.nodes.back().rule;
  for (const gs::node& n : b.program.nodes)
    if (n.kind == op::expert_group_slots)
      return n.rule.is_blocked(route::expert_group) && n.rule.is_blocked(route::token) && !n.rule.is_blocked(route::group) &&
             !inner.is_blocked(route::expert_group) && !inner.is_blocked(route::expert) && in.rank() == 5;
  return false;
}));

static_assert(tracing::holds([](builder& b, auto&) {
  const gs::dim rows = b.program.dims[std::size_t(sent(b, 4, {.factor = 1.5, .minimum = 4, .multiple = 8}).row_dim)];
  return rows.what == gs::dim::kind::rounded && rows.number == 4 && rows.divisor == 8;
}));
static_assert(tracing::out_of_range("send_to_expert_groups", "groups", {0}, [](builder& b, auto&) { sent(b, 0); }));
static_assert(tracing::out_of_range("send_to_expert_groups", "groups, experts", {5, 4}, [](builder& b, auto&) {
  b.options.known.set('E', 4);
  sent(b, 5);
}));
static_assert(tracing::out_of_range("send_to_expert_groups", "rows.factor", {}, [](builder& b, auto&) { sent(b, 2, {-1}); }));
static_assert(fails(fault::rank_mismatch, "send_to_expert_groups", [](builder& b, auto&) {
  gs::send_to_expert_groups(gs::top_k_gating(input(b, "GSE")), input(b, "GS"), 2);
}));
static_assert(fails(fault::dims_differ, "send_to_expert_groups", [](builder& b, auto&) {
  gs::send_to_expert_groups(gs::top_k_gating(input(b, "GSE")), input(b, "GMS"), 2);
}));
static_assert(fails(fault::wrong_gating, "send_to_expert_groups", [](builder& b, auto&) {
  gs::gating_result r = gs::top_k_gating(input(b, "GSE"));
  r.combine = input(b, "GSEC");  // not from a gating
  gs::send_to_expert_groups(r, input(b, "GSM"), 2);
}));
static_assert(fails(fault::wrong_gating, "send_to_expert_groups", [](builder& b, auto& m) {  // weights of replicas would differ
  const symbol expert_of = gs::replicas_of_experts(m, "R", "E");
  gs::send_to_expert_groups(gs::send_to_replicas(gs::top_k_gating(input(b, "GSE")), expert_of), input(b, "GSM"), 2);
}));
static_assert(fails(fault::wrong_gating, "send_to_expert_groups", [](builder& b, auto&) {  // slots in chunks
  gs::send_to_expert_groups(gs::chunk_of(gs::top_k_gating(input(b, "GSE")), 0, 2), input(b, "GSM"), 2);
}));
static_assert(tracing::holds([](builder& b, auto&) {  // experts may choose
  const auto r = gs::send_to_expert_groups(gs::top_k_gating(input(b, "GSE"), {.choice = gs::choice::by_experts}), input(b, "GSM"), 2);
  return r.rows.rank() == 4 && has_dims(r.overflow, "G");
}));
static_assert(fails(fault::rank_mismatch, "combine_from_groups", [](builder& b, auto&) {
  gs::combine_from_groups(sent(b, 2), input(b, "GSM"));
}));
static_assert(fails(fault::dims_differ, "combine_from_groups", [](builder& b, auto&) {
  gs::combine_from_groups(sent(b, 2), gs::dispatch_in_groups(sent(b, 4)));
}));
static_assert(tracing::holds([](builder& b, auto&) {  // in two steps
  const gs::expert_group_routing r = sent(b, 2);
  const symbol sums = gs::sum_in_groups(r, gs::dispatch_in_groups(r));
  return sums.get().dims == r.rows.get().dims && has_dims(gs::combine_groups(r, sums), "GSM");
}));
static_assert(fails(fault::rank_mismatch, "sum_in_groups", [](builder& b, auto&) { gs::sum_in_groups(sent(b, 2), input(b, "GSM")); }));
static_assert(fails(fault::dims_differ, "sum_in_groups", [](builder& b, auto&) {
  gs::sum_in_groups(sent(b, 2), gs::dispatch_in_groups(sent(b, 4)));
}));
static_assert(fails(fault::rank_mismatch, "combine_groups", [](builder& b, auto&) { gs::combine_groups(sent(b, 2), input(b, "GSM")); }));
static_assert(fails(fault::dims_differ, "combine_groups", [](builder& b, auto&) { gs::combine_groups(sent(b, 2), sent(b, 4).rows); }));

}  // namespace

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <gshard/plan.hpp>

#include "../../refused_calls.hpp"

// Like ops/refused_calls.cpp, for the verbs that route tokens to experts.
namespace gs = gshard;
using gs::P, gs::none, gs::symbol;
using refused_calls::passes;

namespace {

static_assert(passes([](auto&, symbol x, symbol u) { gs::top2_gating(u), gs::top2_gating(x, u); }));
static_assert(passes([](auto&, symbol x, symbol u) { gs::top_k_gating(u), gs::top_k_gating(x, u, {.k = 1}); }));
static_assert(passes([](auto&, symbol x, symbol u) { gs::send_to_expert_groups<"x">(gs::top_k_gating(gs::expand_dims<0>(x)), u, 2); }));
static_assert(passes([](auto&, symbol x, symbol u) {
  const gs::expert_group_routing r = gs::send_to_expert_groups(gs::top_k_gating(u), x, 2);
  gs::dispatch_in_groups(r), gs::combine_from_groups(r, u), gs::combine_groups(r, gs::sum_in_groups(r, u));
}));
static_assert(passes([](auto&, symbol x, symbol u) { gs::send_rows(gs::top_k_gating(gs::expand_dims<0>(x)), u, 2); }));
static_assert(passes([](auto&, symbol x, symbol u) { gs::combine_rows(gs::send_rows(gs::top_k_gating(u), x, 2), u); }));
static_assert(passes([](auto& m, symbol x, symbol u) {
  const symbol expert_of = gs::replicas_of_experts(m, "R", "E");
  gs::send_to_replicas(gs::top_k_gating(u), expert_of), gs::send_to_replicas(gs::top_k_gating(gs::expand_dims<0>(x)), u);
  gs::replica_param(m, u, "w", "RM", P<none, none>{}, gs::init::zeros());
}));
static_assert(passes([](auto&, symbol, symbol u) { gs::chunk_of(gs::top_k_gating(u), 0, 2); }));
static_assert(passes([](auto&, symbol, symbol u) {
  const auto chunks = gs::chunks_of_token_groups(u, 2);
  gs::chunks_of_token_groups(gs::top_k_gating(u), 2), gs::join_token_groups(chunks), gs::join_token_groups({u, chunks[0]});
}));

}  // namespace

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/moe/routing/gating.hpp>
#include <gshard/moe/routing/routing_options.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
namespace op = gs::op;
using gs::builder;
using tracing::input;

namespace {

// The default is Algorithm 1: two experts, the second one at random. In evaluation it is always used, and slots may differ.
constexpr gs::gating_attributes settings_of(const gs::routing_options& o) {
  gs::gating_attributes found;
  (void)tracing::holds([&](builder& b, auto&) {
    gs::top_k_gating(input(b, "GSE"), o);
    for (const gs::node& n : b.program.nodes)
      if (n.kind == op::top_k_gating) found = gs::own<gs::gating_attributes>(n);
    return true;
  });
  return found;
}
constexpr bool uses(const gs::routing_options& o, int k, gs::second_expert second, double threshold = 0.5) {
  const gs::gating_attributes a = settings_of(o);
  return a.k == k && a.second == second && a.threshold == threshold && !a.by_experts;
}
static_assert(uses({}, 2, gs::second_expert::random) && uses({.k = 2}, 2, gs::second_expert::always));
static_assert(uses({.choice = gs::choice::automatic}, 2, gs::second_expert::random));
static_assert(uses({.choice = gs::choice::top_k}, 2, gs::second_expert::always));
static_assert(uses({.k = 2, .choice = gs::choice::random_second()}, 2, gs::second_expert::random));
static_assert(uses({.choice = gs::choice::random_second(0.25)}, 2, gs::second_expert::random, 0.25));
static_assert(uses({.choice = gs::choice::second_above(0.25)}, 2, gs::second_expert::above_threshold, 0.25));
static_assert(uses({.training = false}, 2, gs::second_expert::always));
static_assert(uses({.choice = gs::choice::second_above(0.25), .training = false}, 2, gs::second_expert::above_threshold, 0.25));
static_assert(settings_of({.choice = gs::choice::by_experts}).by_experts);
static_assert(gs::detail::in_effect({.slots = {4}, .training = false, .evaluation_slots = {8}}).slots == gs::capacity{8});
static_assert(gs::detail::in_effect({.slots = {4}, .evaluation_slots = {8}}).slots == gs::capacity{4});
static_assert(gs::detail::in_effect({.jitter = 0.1, .gumbel = 1, .training = false}).jitter == 0);

}  // namespace

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Assigns each step of a plan to a part of the training step, such as attention or all-reduce.

#include <gshard/core/plan/move_reason.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/sim/record/run_record.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gshard { inline namespace v0 {

/// The part of a training step to which each step of a plan belongs: the part with the name of its `named_scope`, otherwise `other`. Sums
/// of gradients over devices are `all_reduce`. Collectives in an MoE layer are `dispatch_combine`. Other collectives belong to the part of
/// the step that they serve.
inline std::vector<step_part> parts_of(const plan_view& plan) {
  const auto named = [](const node& n) {
    if (!n.place.scope) return step_part::other;
    int part = 0;
    while (step_part(part) != step_part::other && name(step_part(part)) != n.place.scope) ++part;
    return step_part(part);
  };
  const auto is_of_moe = [](step_part p) {
    return p == step_part::gate_einsum || p == step_part::gate_other || p == step_part::moe_feed_forward;
  };
  const auto part_of = [&](std::size_t i) {
    const node& n = plan.steps[i];
    if (!traits(n.kind).collective || is_looped_product(n.kind)) return named(n);
    const move_reason r = reason_of(plan, i);
    const bool sums = r.why == move_reason::kind::sum;
    const std::int32_t other = sums ? plan.at(n.input(0)).producer : r.consumer;
    const node& local = other < 0 ? n : plan.steps[std::size_t(other)];
    if (sums && local.place.gradient) return step_part::all_reduce;
    return is_of_moe(named(local)) ? step_part::dispatch_combine : named(local);
  };
  std::vector<step_part> parts(plan.steps.size());
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = part_of(i);
  return parts;
}

}}  // namespace gshard::v0

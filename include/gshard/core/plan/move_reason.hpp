// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Explains the moves of a plan: the reason for each communication step, and the step that reads its result.

#include <gshard/core/plan/plan.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 {

/// Why a step of a plan moves data.
struct move_reason {
  enum class kind {
    sum,         // completes a partial sum for its consumer
    window,      // fetches the halo of a window
    annotation,  // an annotation asks for it
    output,      // the result of the program
    update,      // returns an updated parameter to its sharding
    state,       // loop-carried values keep one sharding
    alignment,   // reshards an operand to match the partitioning of its consumer
    whole,       // replicates a dim that its consumer needs unsharded
  };
  kind why = kind::alignment;
  std::int32_t consumer = -1;  // the step that reads the result, or -1: an output or a parameter
  int operand = 0;             // of the consumer
};

/// Why step i of a plan moves data. For a combined step: why its first tensor moves.
constexpr move_reason reason_of(const plan_view& plan, std::size_t i) {
  const node& step = plan.steps[i];
  const value &from = plan.at(step.input(0)), &to = plan.at(step.output());
  move_reason r;
  std::int32_t moved = step.output();
  // One tensor may move in several steps.
  for (std::size_t k = i + 1; k < plan.steps.size() && r.consumer < 0; ++k)
    for (int o = 0; o < plan.steps[k].inputs && r.consumer < 0; ++o) {
      if (plan.steps[k].input(o) != moved) continue;
      if (traits(plan.steps[k].kind).reshards) {
        moved = plan.steps[k].output(o);
      } else {
        r.consumer = std::int32_t(k);
        r.operand = o;
      }
    }
  if (from.layout.partial & ~to.layout.partial) r.why = move_reason::kind::sum;
  else if (!from.windows.empty() || !to.windows.empty()) r.why = move_reason::kind::window;
  else if (const op_ref reader = r.consumer < 0 ? op::none : plan.steps[std::size_t(r.consumer)].kind;
           r.consumer >= 0 && traits(reader).annotates)
    r.why = is_of_loop(reader) ? move_reason::kind::state : move_reason::kind::annotation;
  else if (r.consumer < 0) {
    r.why = move_reason::kind::update;
    for (const port& p : plan.outputs)
      if (p.value == moved) r.why = move_reason::kind::output;
  } else {
    const sharding_rule& rule = plan.steps[std::size_t(r.consumer)].rule;
    for (int d = 0; d < from.rank(); ++d)
      if (!from.layout[d].empty() && to.layout[d].empty() && rule.is_blocked(rule.in[r.operand][d])) r.why = move_reason::kind::whole;
  }
  return r;
}

}}  // namespace gshard::v0

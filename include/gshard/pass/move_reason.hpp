// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/pass/plan.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 {

/// Why a plan moves data in one of its steps.
struct move_reason {
  enum class kind {
    sum,         // what devices have computed of a sum is completed, for a consumer that needs it so
    window,      // what the windows of an operation reach beyond a block is fetched
    annotation,  // the program says so
    output,      // the result of the program
    update,      // a parameter is left as it lies
    state,       // what a loop carries lies alike in all turns
    alignment,   // an operation shares its work so that all operands are cut alike
    whole,       // an operation needs a dim whole that is cut
  };
  kind why = kind::alignment;
  std::int32_t consumer = -1;  // the step that it serves, or -1: an output or a parameter
  int operand = 0;             // of the consumer
};

/// Why step i of a plan, which moves data, is there; of several tensors, why the first moves.
constexpr move_reason reason_of(const plan_view& plan, std::size_t i) {
  const node& step = plan.steps[i];
  const value &from = plan.at(step.input(0)), &to = plan.at(step.output());
  move_reason r;
  std::int32_t moved = step.output();
  // Several moves may follow each other.
  for (std::size_t k = i + 1; k < plan.steps.size() && r.consumer < 0; ++k)
    for (int o = 0; o < plan.steps[k].inputs && r.consumer < 0; ++o) {
      if (plan.steps[k].input(o) != moved) continue;
      if ((traits(plan.steps[k].kind).collective && plan.steps[k].kind != op::looped_einsum) || plan.steps[k].kind == op::slice) {
        moved = plan.steps[k].output(o);
      } else {
        r.consumer = std::int32_t(k);
        r.operand = o;
      }
    }
  if (from.layout.partial & ~to.layout.partial) r.why = move_reason::kind::sum;
  else if (!from.windows.empty() || !to.windows.empty()) r.why = move_reason::kind::window;
  else if (r.consumer >= 0 && plan.steps[std::size_t(r.consumer)].kind == op::annotate) r.why = move_reason::kind::annotation;
  else if (r.consumer >= 0 && plan.steps[std::size_t(r.consumer)].kind == op::carry) r.why = move_reason::kind::state;
  else if (r.consumer < 0) {
    r.why = move_reason::kind::update;
    for (const port& p : plan.outputs)
      if (p.value == moved) r.why = move_reason::kind::output;
  } else {
    const rule& loops = plan.steps[std::size_t(r.consumer)].loops;
    for (int d = 0; d < from.rank(); ++d)
      if (!from.layout[d].empty() && to.layout[d].empty() && loops.is_blocked(loops.in[r.operand][d])) r.why = move_reason::kind::whole;
  }
  return r;
}

}}  // namespace gshard::v0

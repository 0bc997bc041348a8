// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Text that explains why a step of a plan communicates.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/plan/move_reason.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/exec/bind/step_text.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gshard { inline namespace v0 {

/// The reason of a step's communication: the operation that it serves, its source line, and the purpose: `for einsum at model.hpp:12:
/// reshards operand 1 to match its partitioning`. Empty for steps that do not communicate.
std::string describe_reason(const plan_view& plan, std::size_t i);

#if GSHARD_HAS_BODIES

GSHARD_INLINE std::string describe_reason(const plan_view& plan, std::size_t i) {
  const node& step = plan.steps[i];
  if (!traits(step.kind).collective) return {};
  if (step.kind == op::looped_einsum)
    return "for einsum" + detail::place_text(step.place) + ": " +
           (ring_carries_sum(step) ? "its sums exceed" : "operand " + std::to_string(step.attr.ring_operand) + " exceeds") +
           " loop_above, so blocks travel while it computes";
  const move_reason r = reason_of(plan, i);
  const node* const consumer = r.consumer < 0 ? nullptr : &plan.steps[std::size_t(r.consumer)];
  const std::string operand = "operand " + std::to_string(r.operand);
  std::string s = "for ";
  if (consumer) s.append(name_of(*consumer)).append(detail::place_text(consumer->place));
  else s += r.why == move_reason::kind::update ? "a parameter" : "an output";
  switch (r.why) {
    case move_reason::kind::sum: {
      const std::int32_t maker = plan.at(step.input(0)).producer;
      s += ": completes the ";
      constexpr std::string_view names[] = {"sum", "maximum", "minimum", "product"};
      s += names[std::size_t(plan.at(step.input(0)).layout.pending)];
      if (maker >= 0)
        s.append(" of ")
            .append(name_of(plan.steps[std::size_t(maker)]))
            .append(detail::place_text(plan.steps[std::size_t(maker)].place));
      return s;
    }
    case move_reason::kind::window: return s + ": fetches the halo of its windows";
    case move_reason::kind::annotation: return s + ": as annotated";
    case move_reason::kind::output: return s;
    case move_reason::kind::update: return s + ": returns to the sharding of the parameter";
    case move_reason::kind::state: return s + ": loop-carried values keep one sharding";
    case move_reason::kind::whole: return s + ": replicates a dim of " + operand + ", which it needs whole";
    case move_reason::kind::alignment: return s + ": reshards " + operand + " to match its partitioning";
  }
  return s;
}

#endif

}}  // namespace gshard::v0

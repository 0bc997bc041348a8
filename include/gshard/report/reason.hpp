// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/comm/step_text.hpp>
#include <gshard/pass/move_reason.hpp>
#include <gshard/pass/plan.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gshard { inline namespace v0 {

/// `for einsum at model.hpp:12: its operand 1 is cut as the others are`. Empty for steps that move nothing.
inline std::string describe_reason(const plan_view& plan, std::size_t i) {
  const node& step = plan.steps[i];
  if (!traits(step.kind).collective) return {};
  if (step.kind == op::looped_einsum)
    return "for einsum" + detail::place_text(step.place) + ": " +
           (sums_travel(step) ? "its sums are"
                              : "its operand " + std::to_string(step.attr.integer[1]) + " is") +
           " too large to be held whole";
  const move_reason r = reason_of(plan, i);
  const node* const consumer = r.consumer < 0 ? nullptr : &plan.steps[std::size_t(r.consumer)];
  const std::string operand = "its operand " + std::to_string(r.operand);
  std::string s = "for ";
  if (consumer) s.append(name(consumer->kind)).append(detail::place_text(consumer->place));
  else s += r.why == move_reason::kind::update ? "a parameter" : "an output";
  switch (r.why) {
    case move_reason::kind::sum: {
      const std::int32_t maker = plan.at(step.input(0)).producer;
      s += ": completes the ";
      constexpr std::string_view names[] = {"sum", "maximum", "minimum", "product"};
      s += names[std::size_t(plan.at(step.input(0)).layout.pending)];
      if (maker >= 0)
        s.append(" of ")
            .append(name(plan.steps[std::size_t(maker)].kind))
            .append(detail::place_text(plan.steps[std::size_t(maker)].place));
      return s;
    }
    case move_reason::kind::window: return s + ": fetches what its windows reach beyond a block";
    case move_reason::kind::annotation: return s + ": as annotated";
    case move_reason::kind::output: return s;
    case move_reason::kind::update: return s + ", which stays as it lies";
    case move_reason::kind::state: return s + ", whose state lies alike in all turns";
    case move_reason::kind::whole: return s + ": " + operand + " is needed whole";
    case move_reason::kind::alignment: return s + ": " + operand + " is cut as its work is shared";
  }
  return s;
}

}}  // namespace gshard::v0

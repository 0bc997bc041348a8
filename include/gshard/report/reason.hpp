// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/pass/plan.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

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

namespace detail {
inline std::string place_text(const code_place& at) {
  if (!at.file) return {};
  std::string_view file(at.file);
  if (const std::size_t slash = file.rfind('/'); slash != file.npos) file.remove_prefix(slash + 1);
  return " at " + std::string(file) + ":" + std::to_string(at.line) + (at.gradient ? " (its gradient)" : "");
}
}  // namespace detail

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

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Steps and tensors of a plan as text for error messages: kind or name, line and file.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/plan/plan.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gshard { inline namespace v0 {

/// The kinds of a step, each once: "all_to_all", or "all_gather+all_to_all" for a combined step.
std::string kind_text(const node& n);

namespace detail {

/// A line of a program: "moe.hpp:38", or nothing if it is not known.
std::string line_text(const code_place& place);
/// ` at model.cpp:38 in "attention" (its gradient)`: the line and the named_scope around it. Nothing if the line is not known.
std::string place_text(const code_place& place);

/// A step of a plan in messages: "512 all_to_all at model.cpp:38"
std::string step_text(const plan_view& plan, std::int32_t i);

/// "encoder.0.moe.wi" or "the result of einsum at moe.hpp:12".
std::string text_of_value(const plan_view& plan, std::int32_t v);

}  // namespace detail

#if GSHARD_HAS_BODIES

GSHARD_INLINE std::string kind_text(const node& n) {
  if (n.attr.moves == 0) return std::string(name_of(n));
  std::string s;
  for (int i = 0; i < n.inputs; ++i) {
    bool is_new = true;
    for (int before = 0; before < i; ++before) is_new = is_new && operation_of_move(n, before) != operation_of_move(n, i);
    if (is_new) s.append(s.empty() ? "" : "+").append(name(operation_of_move(n, i)));
  }
  return s;
}

namespace detail {

GSHARD_INLINE std::string line_text(const code_place& place) {
  if (!place.file) return {};
  std::string_view file(place.file);
  if (const std::size_t slash = file.rfind('/'); slash != file.npos) file.remove_prefix(slash + 1);
  return std::string(file) + ":" + std::to_string(place.line);
}

GSHARD_INLINE std::string place_text(const code_place& place) {
  if (!place.file) return {};
  std::string s = " at " + line_text(place);
  if (place.scope) s.append(" in \"").append(place.scope).append("\"");
  return place.gradient ? s + " (its gradient)" : s;
}

GSHARD_INLINE std::string step_text(const plan_view& plan, std::int32_t i) {
  const node& n = plan.steps[std::size_t(i)];
  return std::to_string(i) + " " + kind_text(n) + place_text(n.place);
}

GSHARD_INLINE std::string text_of_value(const plan_view& plan, std::int32_t v) {
  const value& t = plan.at(v);
  if (t.parameter >= 0) return std::string(plan.parameters[std::size_t(t.parameter)].name.view());
  for (const port& p : plan.inputs)
    if (p.value == v) return "the input " + std::string(p.name.view());
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    for (int o = 0; o < plan.steps[i].outputs; ++o)
      if (plan.steps[i].output(o) == v) return "the result of " + step_text(plan, std::int32_t(i));
  return "%" + std::to_string(v);
}

}  // namespace detail

#endif

}}  // namespace gshard::v0

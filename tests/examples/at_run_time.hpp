// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Included before the examples: their executables run plans that are made at run time, and written to and read from a file. These equal the
// constants.

#include <gshard/exec/program/executable.hpp>
#include <gshard/runtime/runtime_plan.hpp>
#include <gshard/runtime/runtime_program.hpp>
#include <gshard/sim/report/describe.hpp>

#if __has_include(<nlohmann/json.hpp>) && __has_include(<xxhash.h>)
#include "../io/plan/functions_of_plan.hpp"

#include <gshard/io/plan/plan_file.hpp>
#endif

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace at_run_time {

/// The lines of a plan without the numbers of values and the readers of collectives, sorted.
inline std::vector<std::string> sorted_steps(const std::string& plan) {
  std::vector<std::string> lines(1);
  bool in_number = false;
  for (const char c : plan) {
    in_number = c == '%' || (in_number && c >= '0' && c <= '9');
    if (c == '\n') lines.emplace_back();
    else if (!in_number) lines.back() += c;
  }
  for (std::string& line : lines) line.resize(std::min(line.size(), line.find("  for ")));
  std::sort(lines.begin(), lines.end());
  return lines;
}

/// True if an example adds the results of two calls. Then g++ traces the second one first at run time, and the first one in constants.
inline bool has_operands_in_any_order([[maybe_unused]] const gshard::plan_view& plan) {
#ifdef __clang__
  return false;
#else
  constexpr const char* examples[]{"10_halo_stencil", "12_custom_operation", "16_heat_halo_and_pad",
                                   "17_conjugate_gradients", "22_balanced_experts", "25_pipeline"};
  for (const gshard::node& step : plan.steps)
    for (const char* const example : examples)
      if (step.place.file != nullptr && std::string_view(step.place.file).find(example) != std::string_view::npos) return true;
  return false;
#endif
}

#if __has_include(<nlohmann/json.hpp>) && __has_include(<xxhash.h>)
/// Returns the plan as it is read from its file.
inline gshard::runtime_plan checked(const gshard::runtime_plan& made, const gshard::plan_view& constant) {
  const gshard::plan_functions functions = functions_of(constant);
  const std::string text = plan_text(made.plan(), functions), expected = plan_text(constant, functions);
  if (text != expected && !has_operands_in_any_order(constant))
    throw std::runtime_error("a plan that is made at run time is not the constant:\n" + text + expected);
  const gshard::runtime_plan read = gshard::parse_plan(text, "the example", functions);
  if (plan_text(read.plan(), functions) != text) throw std::runtime_error("a plan that was read is not the one that was written:\n" + text);
  return read;
}
#else
inline gshard::runtime_plan checked(const gshard::runtime_plan& made, const gshard::plan_view&) { return made; }
#endif

}  // namespace at_run_time

template <auto Model, class Mesh, class... Options>
struct gshard::detail::plan_to_run<gshard::program<Model, Mesh, Options...>> {
  static const plan_view& made() {
    static const runtime_plan made = [] {
      const plan_view& constant = program<Model, Mesh, Options...>::plan;
      const auto contents = std::make_shared<plan_contents>();
      contents->traced = trace<Model, Mesh, Options...>();
      contents->planned = compile_traced(contents->traced, Mesh::shape, compile_options_of<Options...>());
      contents->plan = contents->planned.view();
      const std::string text = describe(contents->plan), expected = describe(constant);
      if (text != expected && !(at_run_time::has_operands_in_any_order(constant) &&
                                at_run_time::sorted_steps(text) == at_run_time::sorted_steps(expected)))
        throw std::runtime_error("a plan that is made at run time is not the constant:\n" + text + expected);
      return at_run_time::checked(runtime_plan(contents), constant);
    }();
    return made.plan();
  }
  struct made_when_used {
    operator plan_view() const { return made(); }
  };
  static constexpr made_when_used plan{};
};

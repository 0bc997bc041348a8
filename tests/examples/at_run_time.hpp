// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Included before the examples: their executables run plans that are made at run time. These equal the constants.

#include <gshard/exec/program/executable.hpp>
#include <gshard/runtime/runtime_program.hpp>
#include <gshard/sim/report/describe.hpp>

#include <algorithm>
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

inline void check_same(const gshard::plan_view& plan, const gshard::plan_view& constant) {
  const std::string made = describe(plan), expected = describe(constant);
  if (made != expected && !(has_operands_in_any_order(constant) && sorted_steps(made) == sorted_steps(expected)))
    throw std::runtime_error("a plan that is made at run time is not the constant:\n" + made + expected);
}

}  // namespace at_run_time

template <auto Model, class Mesh, class... Options>
struct gshard::detail::plan_to_run<gshard::program<Model, Mesh, Options...>> {
  static const plan_tables& made() {
    static const plan_tables tables = [] {
      graph g = trace<Model, Mesh, Options...>();
      plan_tables planned = compile_traced(g, Mesh::shape, compile_options_of<Options...>());
      at_run_time::check_same(planned.view(), program<Model, Mesh, Options...>::plan);
      return planned;
    }();
    return tables;
  }
  struct made_when_used {
    operator plan_view() const { return made().view(); }
  };
  static constexpr made_when_used plan{};
};

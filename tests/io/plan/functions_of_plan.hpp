// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/core/plan/plan.hpp>
#include <gshard/runtime/plan_functions.hpp>

#include <cstddef>
#include <string>

/// The library's functions, and names for the others of a plan.
inline gshard::plan_functions functions_of(const gshard::plan_view& plan) {
  gshard::plan_functions all;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const gshard::attributes& a = plan.steps[i].attr;
    if (a.function && all.name_of(*a.function).empty()) all.add("function " + std::to_string(i), *a.function);
    if (a.custom && !all.find_custom(a.custom->name)) all.add(*a.custom);
  }
  return all;
}

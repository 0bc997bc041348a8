// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/core/program/program.hpp>
#include <gshard/exec/process/diagnostic.hpp>
#include <gshard/exec/process/error.hpp>

// The plan of a program, computed when a test runs.
namespace planned {

namespace gs = gshard;

template <class Program>
struct planner;
template <auto Model, class Mesh, class... Options>
struct planner<gs::program<Model, Mesh, Options...>> {
  static gs::plan_tables plan() {
    gs::plan_tables made = gs::detail::build_program<Model, Mesh, Options...>();
    if (made.problem) throw gs::error("planning: " + gs::describe(made.problem));
    return made;
  }
};

/// The plan is computed once. The class `Program` itself is not instantiated.
template <class Program>
gs::plan_view plan_of() {
  static const gs::plan_tables made = planner<Program>::plan();
  return made.view();
}

}  // namespace planned

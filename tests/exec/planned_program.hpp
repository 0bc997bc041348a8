// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "same_plan.hpp"

#include <gshard/testing/run_program.hpp>

#include <cstddef>
#include <utility>

// Programs that are planned when a test runs: their plans cost the compiler no time. same_plan.hpp shows that both are one plan.
namespace planned {

namespace gs = gshard;

/// The plan of a program. The class `Program` itself is not instantiated.
template <class Program>
gs::plan_tables plan_of() {
  gs::plan_tables made = same_plan::planner<Program>::plan();
  gs::testing::check(made.problem, "planning");
  return made;
}

/// As `gshard::executable`, with whole tensors as doubles for inputs and results.
template <class Program>
class executable {
 public:
  std::uint64_t seed = 0;

  executable(const gs::any_cluster& on, const gs::dims& extents, gs::parameter_store store)
      : on_(on), plan_(plan_of<Program>()), engine_(plan_.view(), gs::all_kernels, on_, extents, std::move(store)) {}

  gs::testing::arrays operator()(const gs::testing::arrays& inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i) gs::testing::scatter(on_, engine_.input(i), inputs[i]);
    engine_.run({.seed = seed, .step = step_++});
    gs::testing::arrays results;
    for (std::size_t i = 0; i < plan_.outputs.size(); ++i) results.push_back(gs::testing::collect(on_, engine_.output(i)));
    return results;
  }

 private:
  gs::any_cluster on_;
  gs::plan_tables plan_;
  gs::executor engine_;
  std::uint32_t step_ = 0;
};

}  // namespace planned

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "same_plan.hpp"

#include <gshard/testing/run_program.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

// Programs that are planned when a test runs: their plans cost the compiler no time. same_plan.hpp compares both plans.
namespace planned {

namespace gs = gshard;

/// The plan of a program. The class `Program` itself is not instantiated.
template <class Program>
gs::plan_tables plan_of() {
  gs::plan_tables made = same_plan::planner<Program>::plan();
  gs::testing::check(made.problem, "planning");
  return made;
}

/// The results of a run, as doubles.
struct results {
  gs::testing::arrays all;

  double item(std::size_t i = 0) const { return all[i][0]; }
  std::vector<float> floats(std::size_t i = 0) const { return {all[i].begin(), all[i].end()}; }
  std::vector<std::int32_t> integers(std::size_t i) const {
    std::vector<std::int32_t> list;
    for (const double v : all[i]) list.push_back(std::int32_t(v));
    return list;
  }
};

/// As `gshard::executable`, whose inputs are ranges of whole tensors.
template <class Program>
class executable {
 public:
  std::uint64_t seed;

  executable(const gs::any_cluster& on, const gs::dims& extents, gs::parameter_store store)
      : seed(store.seed()), on_(on), plan_(plan_of<Program>()), engine_(plan_.view(), gs::all_kernels, on_, extents, std::move(store)) {}

  template <class... Ranges>
  results operator()(const Ranges&... inputs) {
    std::size_t next = 0;
    (gs::testing::scatter(on_, engine_.input(next++), gs::testing::array(inputs.begin(), inputs.end())), ...);
    engine_.run({.seed = seed, .step = step_++});
    results r;
    for (std::size_t i = 0; i < plan_.outputs.size(); ++i) r.all.push_back(gs::testing::collect(on_, engine_.output(i)));
    return r;
  }

 private:
  gs::any_cluster on_;
  gs::plan_tables plan_;
  gs::executor engine_;
  std::uint32_t step_ = 0;
};

}  // namespace planned

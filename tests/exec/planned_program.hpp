// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "planner.hpp"
#include "same_plan.hpp"

#include <gshard/exec/program/untyped_executable.hpp>
#include <gshard/testing/run_program.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

// Programs that are planned when a test runs, so that the compiler does not spend time on their plans. same_plan.hpp compares both plans.
namespace planned {

namespace gs = gshard;

/// The results of a run, as doubles.
struct results {
  gs::testing::arrays all;

  double item(std::size_t i = 0) const { return all[i][0]; }
  const std::vector<double>& doubles(std::size_t i = 0) const { return all[i]; }
  std::vector<float> floats(std::size_t i = 0) const { return {all[i].begin(), all[i].end()}; }
  std::vector<std::int32_t> integers(std::size_t i) const {
    std::vector<std::int32_t> list;
    for (const double v : all[i]) list.push_back(std::int32_t(v));
    return list;
  }
};

/// Like `gshard::executable`. Inputs are contiguous ranges of whole tensors. Results must be complete on the process.
template <class Program>
class executable : public gs::untyped_executable {
 public:
  executable(const gs::any_cluster& on, const gs::dims& extents, gs::parameter_store store)
      : untyped_executable(plan_of<Program>(), gs::all_kernels, on, extents, std::move(store), {}, {}, {}) {
    check_replicas_every = gs::detail::steps_between_replica_checks;
  }
  executable(const gs::any_cluster& on, const gs::dims& extents) : executable(on, extents, gs::parameter_store(on)) {}

  template <class... Ranges>
  results operator()(const Ranges&... inputs) {
    const std::vector<gs::detail::untyped_array> given{array_of(inputs)...};
    const gs::detail::thread_rule::use in_use = executor().enter();
    gs::process_error problem = prepare();
    begin_inputs();
    if (problem.empty()) problem = gs::detail::problem_of([&] { write(given); });
    run_once(std::move(problem), 0, [&](std::vector<gs::fact>& facts) {
      for (std::size_t i = 0; i < given.size(); ++i) add_facts_of_array(facts, name(i), given[i], false);
    });
    results r;
    for (std::size_t i = 0; i < executor().plan().outputs.size(); ++i) r.all.push_back(gs::testing::collect(cluster(), output(i)));
    return r;
  }

 private:
  template <class Range>
  static gs::detail::untyped_array array_of(const Range& given) {
    const std::span all(given);
    return gs::detail::whole_array<typename decltype(all)::value_type>{all.data(), {std::int64_t(all.size())}};
  }
  input_name name(std::size_t i) const { return {i, executor().plan().inputs[i].name.view()}; }
  void write(const std::vector<gs::detail::untyped_array>& given) {
    if (given.size() != executor().plan().inputs.size()) throw gs::error("a program is called with another number of inputs than it has");
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (given[i].type != input(i).type) throw gs::error(name(i).text() + " has another element type");
      write_array(name(i), given[i], false);
    }
  }
};

}  // namespace planned

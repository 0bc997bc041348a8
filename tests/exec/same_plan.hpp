// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "planner.hpp"

#include <gshard/core/program/program.hpp>
#include <gshard/exec/backend/simulated.hpp>
#include <gshard/exec/program/plan_facts.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

// Whether two plans are equal in everything that ranks compare before they run one.
namespace same_plan {

namespace gs = gshard;

/// The mesh and the extents to which a plan is bound.
struct place {
  std::vector<int> mesh;
  gs::dims dims;
};

inline std::vector<std::string> facts_of(const gs::plan_view& plan, const place& on) {
  const gs::any_cluster cluster(plan.mesh, std::make_shared<gs::simulated>(on.mesh));
  gs::detail::bound_plan bound(plan, cluster);
  bound.bind(on.dims);
  std::vector<gs::fact> all;
  gs::detail::plan_facts(bound).add_to(all);
  std::vector<std::string> text;
  for (const gs::fact& f : all) text.push_back(f.what + ": " + f.value);
  return text;
}

/// The first fact that differs, or nothing.
inline std::string difference(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::string mine = i < a.size() ? a[i] : "nothing", other = i < b.size() ? b[i] : "nothing";
    if (mine != other) return mine + " instead of " + other;
  }
  return {};
}

/// The difference between the run-time plan of a program and its constant plan, or nothing.
template <class Program>
std::string at_run_time(const place& on) {
  return difference(facts_of(planned::plan_of<Program>(), on), facts_of(Program::plan, on));
}

}  // namespace same_plan

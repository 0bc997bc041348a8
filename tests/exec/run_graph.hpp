// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../effort.hpp"

#include <gshard/sim/report/describe.hpp>
#include <gshard/testing/check_shardings.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <vector>

// The library's checks for doctest. If GSHARD_PRINT_PASSES is set in the environment, every pass of the planner is printed.
namespace run_graph {

namespace gs = gshard;
using namespace gs::testing;

inline void print_pass(std::string_view pass, const gs::plan_view& program) {
  if (std::getenv("GSHARD_PRINT_PASSES")) std::cout << "after " << pass << ": " << gs::describe(program);
}

inline std::vector<gs::sharding> all_layouts(int rank, int axes, bool pending = false) { return all_shardings(rank, axes, pending); }

/// The results on one device.
inline arrays serially(const traced& t, const gs::dims& dims, const arrays& inputs) { return run(t, serial(t, dims), inputs); }

inline void every_sharding(const traced& t, sweep how) {
  how.observer = print_pass;
  const std::size_t most = how.most;  // a fifth of the settings, or a tenth of many
  how.most = std::min(repetitions(most), std::max(repetitions(most, std::size_t(10)), std::size_t(100)));
  CHECK(differences(t, how) == "");
}

}  // namespace run_graph

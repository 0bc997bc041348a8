// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A program on one device, for tests of single steps. tests/exec/every_sharding*_test.cpp compare other shardings with it.

#include "../run_graph.hpp"

#include <functional>
#include <span>
#include <vector>

namespace run_graph {

using given = std::span<const gshard::symbol>;
using scope = gshard::parameter_scope;

inline arrays serial_run(const std::vector<input>& inputs, const gshard::dims& dims, const arrays& values,
                         const std::function<gshard::list<gshard::symbol>(const scope&, given)>& f) {
  const traced t = trace(inputs, f);
  return run(t, serial(t, dims), values);
}

}  // namespace run_graph

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "run_graph.hpp"

#include <gshard/core/grad/differentiate.hpp>
#include <gshard/core/trace/map.hpp>

#include <cstddef>
#include <span>

namespace run_graph {

/// y, and the gradients of <y, dy> with respect to the first `wanted` inputs; dy is the last input.
inline gs::list<gs::symbol> with_gradients(gs::symbol y, std::span<const gs::symbol> x, std::size_t wanted) {
  gs::list<gs::symbol> results{y};
  for (const gs::symbol& g : gs::gradients(gs::sum(y * x.back()), x.first(wanted))) results.push_back(lay_out(g));
  return results;
}

}  // namespace run_graph

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/sim/network/torus.hpp>

#include <algorithm>
#include <vector>

/// A torus of chips, or a mesh if no dimension wraps.
inline gshard::torus chips(const std::vector<int>& extents, int cores = 1, bool wrap = true) {
  gshard::torus t;
  t.dims = int(extents.size());
  std::ranges::copy(extents, t.extents.begin());
  t.wrap = {wrap, wrap, wrap};
  t.cores = cores;
  return t;
}

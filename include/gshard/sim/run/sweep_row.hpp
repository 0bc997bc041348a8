// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A row of a comparison of simulated runs: mesh, mapping, time and memory.

#include <gshard/core/base/compiler.hpp>

#include <cstdint>
#include <string>

namespace gshard { inline namespace v0 {

/// One of several simulated runs of a program that are compared: its mesh, its mapping and its cost.
struct sweep_row {
  std::string mesh;     // "data=64 expert=32"
  std::string mapping;  // the shardings by axis, or the dimension of the network for each axis
  double seconds = 0;   // of a step; 0: not run, because it does not fit or has a problem
  std::int64_t peak = 0;      // bytes of the device that holds most
  std::int64_t limit = 0;  // of a device; 0: no limit
  bool fits = true;
  double core_years = 0;  // of the complete training; 0: not requested
  std::string problem{};  // the reason if it cannot run; `fits` is then false
};

}}  // namespace gshard::v0

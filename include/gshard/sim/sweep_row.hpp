// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/base/compiler.hpp>

#include <cstdint>
#include <string>

namespace gshard { inline namespace v0 {

/// One of several simulated runs of a program that are compared: a mesh, how the program lies on it, and what that costs.
struct sweep_row {
  std::string mesh;     // "data=64 expert=32"
  std::string mapping;  // what is cut over which axis, or onto which dimension of the network an axis goes
  double seconds = 0;   // of a step; 0: it was not run, because it does not fit, or has a problem
  std::int64_t peak = 0;      // bytes of the device that holds most
  std::int64_t capacity = 0;  // of a device; 0: not limited
  bool fits = true;
  double core_years = 0;  // of the whole training; 0: not asked for
  std::string problem{};  // why it cannot run; then it does not fit either
};

}}  // namespace gshard::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Finds the processor cores that this process may use.

#include <gshard/core/base/compiler.hpp>

#if defined(__linux__)
#include <sched.h>
#endif

#include <array>
#include <cstddef>

namespace gshard { inline namespace v0 {

/// By core of this machine: 1 if this process may run on it, otherwise 0. All 1 if the system gives no answer.
using core_flags = std::array<int, 1024>;

inline core_flags cores_of_process() {
  core_flags cores;
  cores.fill(1);
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    for (std::size_t i = 0; i < cores.size(); ++i) cores[i] = i < CPU_SETSIZE && CPU_ISSET(i, &set) ? 1 : 0;
#endif
  return cores;
}

}}  // namespace gshard::v0

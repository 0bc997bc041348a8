// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The seed and step of one run of a plan, and the counts of its communication.

#include <gshard/core/base/compiler.hpp>

#include <cstdint>

namespace gshard { inline namespace v0 {

namespace detail {
class finite_checks;
}

/// The seed and the step of one run. Random operations depend on both, on their number in the program and on the global index.
/// Optimizers also use the step.
struct run_context {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  detail::finite_checks* checks = nullptr;  // where kernels report numbers that are not finite; set by the executor
};

/// Calls of one kind of communication, and the bytes they received.
struct received_count {
  std::int64_t calls = 0;
  std::int64_t bytes = 0;
};

}}  // namespace gshard::v0

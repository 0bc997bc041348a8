// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Hooks that are called when a run fails, so that the event log can record the failure.

#include <gshard/core/base/exceptions.hpp>

#include <atomic>
#include <cstdint>
#include <string>

namespace gshard { inline namespace v0 { namespace detail {

/// Functions that neither throw nor communicate; null: none. The event log sets them.
struct failure_hooks {
  /// A not_finite_error is about to be thrown.
  std::atomic<void (*)(const std::string& text, std::uint32_t step)> not_finite{nullptr};
  /// The process ends itself, or reports its failure to the others. Called by any thread. Returns within about a second.
  std::atomic<void (*)(const std::string& why)> abort{nullptr};

  static failure_hooks& get() {
    static failure_hooks one;
    return one;
  }
  static void tell_not_finite(const std::string& text, std::uint32_t step) {
    if (const auto f = get().not_finite.load()) f(text, step);
  }
  static void tell_abort(const std::string& why) {
    if (const auto f = get().abort.load()) f(why);
  }
};

}}}  // namespace gshard::v0::detail

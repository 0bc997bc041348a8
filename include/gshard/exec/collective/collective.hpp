// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The interface of all collectives of a plan.

#include <gshard/core/base/compiler.hpp>
#include <gshard/exec/process/function_ref.hpp>

#include <exception>

namespace gshard { inline namespace v0 { namespace detail {

/// A communication step (or slice) of a plan, bound to memory. A run starts it once, and then finishes or drops it. Nothing is allocated
/// after the first run. @see make_collective
class collective {
 public:
  collective() = default;
  collective(const collective&) = delete;
  collective& operator=(const collective&) = delete;
  virtual ~collective() = default;

  /// Sends the first messages. Until finish() returns, operands must not change and results must not be used.
  virtual void start() = 0;
  /// Continues with messages that have arrived, without waiting. Keeps errors for finish(). Returns false if finish() would wait for
  /// messages that were sent before.
  virtual bool advance() = 0;
  /// Waits until the results are complete, and throws errors of messages after that.
  virtual void finish() = 0;
  /// Abandons a step that was started, after an error on all processes. Other devices may have sent all its messages, so it receives them.
  virtual void drop() = 0;
};

/// Finishes both halves of a collective, the second after an error as well: other devices wait for its messages. Throws the first error.
inline void finish_both(function_ref<void()> first, function_ref<void()> second) {
  std::exception_ptr problem;
  for (const function_ref<void()>& finish : {first, second}) {
    try {
      finish();
    } catch (...) {
      if (!problem) problem = std::current_exception();
    }
  }
  if (problem) std::rethrow_exception(problem);
}

}}}  // namespace gshard::v0::detail

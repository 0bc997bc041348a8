// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Threads of the library, which get no signals.

#include <gshard/exec/process/error.hpp>

#include <pthread.h>
#include <signal.h>

#include <string>
#include <thread>
#include <utility>

namespace gshard { inline namespace v0 { namespace detail {

/// Starts a thread that calls f(). It gets no signals: they belong to the threads of the application. The caller's mask of signals is the
/// same afterwards. Throws `gshard::error` if no thread can be made.
template <class F>
std::thread thread_without_signals(F&& f) {
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread made;
  const process_error problem = problem_of([&] { made = std::thread(std::forward<F>(f)); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!problem.empty()) throw error("no thread can be made: " + problem.text);
  return made;
}

}}}  // namespace gshard::v0::detail

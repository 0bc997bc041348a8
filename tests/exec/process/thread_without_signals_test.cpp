// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/process/thread_without_signals.hpp>

#include "../backend/failing_threads.hpp"

#include <doctest/doctest.h>

#include <signal.h>

#include <string>

namespace gs = gshard;

namespace threads_without_signals {
inline bool is_blocked(int signal) {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return sigismember(&mask, signal) == 1;
}
}  // namespace threads_without_signals

TEST_CASE("thread_without_signals: the thread has all signals blocked, and its maker none") {
  bool there = false;
  gs::detail::thread_without_signals([&] {
    there = threads_without_signals::is_blocked(SIGTERM) && threads_without_signals::is_blocked(SIGUSR1);
  }).join();
  CHECK(there);
  CHECK_FALSE(threads_without_signals::is_blocked(SIGTERM));
}

TEST_CASE("thread_without_signals: without room for a thread, an error, and signals as before") {
  const failing_threads now;
  if (!now.fail()) return;
  CHECK_THROWS_WITH_AS(gs::detail::thread_without_signals([] {}).join(), doctest::Contains("no thread can be made: "), gs::error);
  CHECK_FALSE(threads_without_signals::is_blocked(SIGTERM));
}

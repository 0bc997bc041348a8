// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Requests to stop a run: signals that ask a process to save its work and to end.

#include <gshard/exec/process/error.hpp>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <system_error>

namespace gshard { inline namespace v0 {

/// While an object exists, its signals do not end the process, but are remembered. If any process got one, `checkpointer::after_step` saves
/// and returns false on every process. The destructor restores the old handlers. Make it before the checkpointer, and one at a time.
/// Schedulers send SIGTERM, or SIGUSR1 some time before the end.
class stop_request {
 public:
  /// Throws `gshard::error` if there is such an object already, or if the system refuses a handler.
  explicit stop_request(std::initializer_list<int> signals = {SIGTERM, SIGUSR1}) {
    if (exists_.exchange(true)) throw error("stop_request: there is one already");
    requested_ = false;
    struct sigaction on_signal {};
    on_signal.sa_handler = [](int) { requested_.store(true, std::memory_order_relaxed); };
    on_signal.sa_flags = SA_RESTART;
    sigemptyset(&on_signal.sa_mask);
    for (const int signal : signals) {
      if (n_ == before_.size() || ::sigaction(signal, &on_signal, &before_[n_].action) != 0) {
        const std::string why = n_ == before_.size() ? "too many signals" : std::generic_category().message(errno);
        restore();
        throw error("stop_request: signal " + std::to_string(signal) + " cannot be handled: " + why);
      }
      before_[n_++].signal = signal;
    }
  }
  stop_request(const stop_request&) = delete;
  stop_request& operator=(const stop_request&) = delete;
  ~stop_request() { restore(); }

  /// True if an object exists and the process has got one of its signals, or request() was called.
  static bool requested() { return requested_.load(std::memory_order_relaxed); }
  /// True while an object exists.
  static bool exists() { return exists_.load(std::memory_order_relaxed); }
  /// Has the effect of a signal, without one. Has no effect while there is no object.
  static void request() {
    if (exists()) requested_ = true;
  }

 private:
  struct handled {
    int signal = 0;
    struct sigaction action {};
  };
  void restore() {
    while (n_ > 0) {
      --n_;
      ::sigaction(before_[n_].signal, &before_[n_].action, nullptr);
    }
    requested_ = false;
    exists_ = false;
  }

  std::array<handled, 16> before_;
  std::size_t n_ = 0;

  inline static std::atomic<bool> exists_ = false, requested_ = false;
  static_assert(std::atomic<bool>::is_always_lock_free);  // for use in a handler
};

}}  // namespace gshard::v0

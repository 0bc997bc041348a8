// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Checks which threads use a cluster, and throws for a thread that breaks the rule.

#include <gshard/core/base/compiled.hpp>
#include <gshard/exec/process/error.hpp>

#include <pthread.h>

#include <atomic>
#include <string>

namespace gshard { inline namespace v0 { namespace detail {

/// The rule of one object, and the thread that uses the object. A thread that breaks the rule gets an error before it changes anything. The
/// other thread's results stay right.
class thread_rule {
 public:
  enum class allows { any_thread, one_at_a_time, main_thread, one_in_process };

  /// `what`: the object, a literal. main_thread: the constructing thread, which is MPI's main thread. one_in_process: one thread at a time
  /// may use objects with this rule.
  explicit thread_rule(allows which, const char* what = "cluster") : which_(which), what_(what) {
    if (which == allows::main_thread) main_ = ::pthread_self();
    if (which == allows::one_in_process) user_ = &user_in_process();
  }
  thread_rule(const thread_rule&) = delete;
  thread_rule& operator=(const thread_rule&) = delete;

  bool is_checked() const { return which_ != allows::any_thread; }
  /// Throws the error of a thread that breaks the rule.
  [[noreturn]] void refuse();

  /// Marks the object as used by this thread during its lifetime. An inner use belongs to the outer one.
  class [[nodiscard]] use {
   public:
    /// Throws `gshard::error` if this thread may not use the object now. The text names the rule.
    explicit use(thread_rule& of) : of_(of.enter() ? &of : nullptr) {}
    use(const use&) = delete;
    use& operator=(const use&) = delete;
    ~use() {
      if (of_ != nullptr) of_->user_->store({}, std::memory_order_release);
    }

   private:
    thread_rule* of_;
  };

  /// Returns and clears the text of the last refused call, or null. `backend::begin` sends it to the other processes, which wait for the
  /// call.
  const char* take_refusal() {
    return refused_.load(std::memory_order_relaxed) == nullptr ? nullptr : refused_.exchange(nullptr, std::memory_order_relaxed);
  }

 private:
  using thread = pthread_t;  // not std::thread::id: every program includes this header
  using user = std::atomic<thread>;

  allows which_;
  const char* what_;
  thread main_{};
  user own_user_{};  // no thread: 0
  user* user_ = &own_user_;
  std::atomic<const char*> refused_ = nullptr;

  static user& user_in_process();

  bool enter() {
    if (!is_checked()) return false;
    const thread me = ::pthread_self();
    thread other = user_->load(std::memory_order_relaxed);
    if (other == me) return false;
    if ((which_ == allows::main_thread && me != main_) || other != thread{} ||
        !user_->compare_exchange_strong(other, me, std::memory_order_acquire))
      refuse();
    return true;
  }
};

#if GSHARD_HAS_BODIES

GSHARD_INLINE thread_rule::user& thread_rule::user_in_process() {
  static user one{};
  return one;
}
GSHARD_INLINE void thread_rule::refuse() {
  const char* const rule =
      which_ == allows::main_thread
          ? ": MPI_Init_thread has given MPI_THREAD_FUNNELED or less, so only the thread that initialized MPI may use it; another one does"
      : which_ == allows::one_in_process
          ? ": MPI_Init_thread has given MPI_THREAD_SERIALIZED, so one thread at a time may use clusters; two do at the same time"
          : ": one thread at a time may use it; two do at the same time";
  refused_.store(rule, std::memory_order_relaxed);
  throw error(what_ + std::string(rule));
}

#endif

}}}  // namespace gshard::v0::detail

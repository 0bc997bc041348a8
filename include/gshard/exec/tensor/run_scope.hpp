// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A scope around a training loop. It tells the other processes if this one leaves it by an exception, so that they do not wait.

#include <gshard/core/base/compiled.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/exec/tensor/cluster.hpp>

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#if GSHARD_HAS_BODIES
#include <gshard/exec/backend/wait_watch.hpp>
#include <gshard/exec/process/failure_hooks.hpp>

#include <cstdlib>
#include <mutex>
#include <vector>
#endif

namespace gshard { inline namespace v0 {

/// A scope around a part of the program that all processes of a cluster run, such as a training loop:
///
///   gs::run_scope(cluster).run([&] { for (...) step(batch()); });
///
/// If a process leaves it by an exception, the other processes do not wait until their deadline. A process that waits for others reports
/// the failed rank, with the text of the exception, and ends with `wait_deadlines::restart_status`. A process that does not wait throws a
/// `gshard::error` with that text in its next collective call on the cluster. If all processes leave by an exception, nothing happens.
///
/// All processes must make the same scopes of a cluster, in the same order. Construction and destruction do not communicate. The messages
/// are those of `wait_watch`; with both deadlines 0 there are none. While a scope exists, it handles std::terminate: it tells the others of
/// the exception that was not caught, and then calls the previous handler. Event logs of this process get the event "abort".
class run_scope {
 public:
  explicit run_scope(any_cluster on);
  run_scope(const run_scope&) = delete;
  run_scope& operator=(const run_scope&) = delete;
  /// Tells the others if an exception destroys the scope.
  ~run_scope();

  /// Calls f(). If it throws, tells the others the text of the exception, and rethrows it.
  template <class F>
  decltype(auto) run(F&& f) {
    try {
      return std::forward<F>(f)();
    } catch (const not_finite_error& e) {
      fail_once(e.what(), false);  // it is in the event logs already
      throw;
    } catch (const std::exception& e) {
      fail_once(e.what());
      throw;
    } catch (...) {
      fail_once("it threw an exception without a text");
      throw;
    }
  }
  /// Tells the others that this process fails, until they confirm it, for at most 3 s. The next collective call of this process also
  /// throws.
  void fail(const std::string& text);

 private:
  any_cluster on_;
  int exceptions_;
  std::uint64_t number_ = 0;
  bool has_failed_ = false;

  struct living;
  static living& all();

  void tell(const std::string& text);
  void fail_once(const std::string& text, bool is_abort = true) noexcept;
  static std::string text_of_exception();
  [[noreturn]] static void terminate();
};

#if GSHARD_HAS_BODIES

/// The scopes of this process.
struct run_scope::living {
  std::mutex mutex;
  std::vector<run_scope*> scopes;
  std::terminate_handler before = nullptr;
};

GSHARD_INLINE run_scope::run_scope(any_cluster on) : on_(std::move(on)), exceptions_(std::uncaught_exceptions()) {
  if (wait_watch* const waits = on_.backend().waits()) number_ = waits->open_scope();
  const std::scoped_lock lock(all().mutex);
  if (all().scopes.empty()) all().before = std::set_terminate(terminate);
  all().scopes.push_back(this);
}

GSHARD_INLINE run_scope::~run_scope() {
  if (std::uncaught_exceptions() > exceptions_) fail_once("it left its run by an exception");
  {
    const std::scoped_lock lock(all().mutex);
    std::erase(all().scopes, this);
    if (all().scopes.empty() && std::get_terminate() == terminate) std::set_terminate(all().before);
  }
  if (wait_watch* const waits = on_.backend().waits()) waits->close_scope(number_);
}

GSHARD_INLINE void run_scope::fail(const std::string& text) {
  tell(text);
  detail::failure_hooks::tell_abort(text);
}

GSHARD_INLINE run_scope::living& run_scope::all() {
  static living one;
  return one;
}

GSHARD_INLINE void run_scope::tell(const std::string& text) {
  has_failed_ = true;
  if (wait_watch* const waits = on_.backend().waits()) waits->fail(number_, text);
}

GSHARD_INLINE void run_scope::fail_once(const std::string& text, bool is_abort) noexcept {
  try {
    if (has_failed_) return;
    if (is_abort) fail(text);
    else tell(text);
  } catch (const std::exception&) {  // no memory: the deadline remains
  }
}

GSHARD_INLINE std::string run_scope::text_of_exception() {
  std::string text = "it called std::terminate";
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::exception& e) {
    text = std::string("an exception was not caught: ") + e.what();
  } catch (...) {
    text = "an exception was not caught";
  }
  return text;
}

GSHARD_INLINE void run_scope::terminate() {
  std::terminate_handler before = nullptr;
  {
    const std::scoped_lock lock(all().mutex);
    before = std::exchange(all().before, nullptr);  // the handler may call this one
    for (run_scope* const scope : all().scopes) scope->fail_once(text_of_exception());
  }
  if (before != nullptr) before();
  std::abort();
}

#endif

}}  // namespace gshard::v0

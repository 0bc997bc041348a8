// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A queue of collective jobs that run in the background, in the order of their starts.

#include <gshard/core/base/compiled.hpp>
#include <gshard/exec/process/callback.hpp>

#include <atomic>
#include <exception>
#include <memory>
#include <utility>

#if GSHARD_HAS_BODIES
#include <gshard/exec/process/thread_without_signals.hpp>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#endif

namespace gshard { inline namespace v0 {

/// Jobs of one backend. A thread of the queue runs them one after another. Without threads, the waiting caller runs them. Jobs never
/// overlap.
class run_queue {
 public:
  struct job {
    callback<void()> run;
    std::exception_ptr error{};
    bool done = false;
  };
  using handle = std::shared_ptr<job>;

  run_queue();
  run_queue(const run_queue&) = delete;
  run_queue& operator=(const run_queue&) = delete;
  /// Runs all started jobs, then ends the thread.
  ~run_queue();

  /// Adds a job. `threads`: a thread may run it now; the same for all jobs of a queue. Otherwise it runs in finish() or drain().
  handle start(callback<void()> run, bool threads);
  /// Returns when the job and all before it are done.
  void finish(const handle& started);
  /// Returns when all jobs are done. Does nothing in a job.
  void drain() {
    if (waiting_ != 0) drain_all();
  }
  /// True in a job.
  bool in_job() const { return waiting_ != 0 && runs_here(); }

 private:
  class state;
  std::atomic<int> waiting_ = 0;  // jobs that are not done
  std::unique_ptr<state> state_;

  void drain_all();
  bool runs_here() const;
};

/// A job of a queue that may still run. The destructor and a move wait for it, because the job may use objects that are destroyed or moved
/// with this one.
class pending_run {
 public:
  pending_run() = default;  ///< No job.
  pending_run(run_queue& on, run_queue::handle job) : on_(&on), job_(std::move(job)) {}
  pending_run(pending_run&& other) noexcept { take(other); }
  pending_run& operator=(pending_run&& other) noexcept {
    finish();
    take(other);
    return *this;
  }
  ~pending_run() { finish(); }

  /// Waits for the last job and starts another one. Unlike a move assignment, it does not wait for the new job.
  void start(run_queue& on, callback<void()> run, bool threads) {
    finish();
    job_ = on.start(std::move(run), threads);
    on_ = &on;
  }

  explicit operator bool() const { return job_ != nullptr; }
  /// Returns when the job is done, and throws its error.
  void wait() {
    finish();
    const run_queue::handle done = std::exchange(job_, nullptr);
    if (done->error) std::rethrow_exception(done->error);
  }
  /// Returns when the job is done. Keeps its error for wait().
  void finish() noexcept {
    if (job_) on_->finish(job_);
  }

 private:
  run_queue* on_ = nullptr;
  run_queue::handle job_;

  void take(pending_run& other) noexcept {
    other.finish();
    on_ = other.on_;
    job_ = std::move(other.job_);
  }
};

#if GSHARD_HAS_BODIES

class run_queue::state {
 public:
  explicit state(std::atomic<int>& waiting) : count_(waiting) {}
  state(const state&) = delete;
  state& operator=(const state&) = delete;
  ~state() {
    drain();
    if (!worker_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    worker_.join();
  }

  handle start(callback<void()> run, bool threads) {
    const handle added = std::make_shared<job>(job{std::move(run)});
    const std::lock_guard lock(mutex_);
    if (threads && !worker_.joinable()) worker_ = detail::thread_without_signals([this] { work(); });  // first, because it may throw
    waiting_.push_back(added);
    ++count_;
    changed_.notify_all();
    return added;
  }
  void finish(const handle& started) {
    std::unique_lock lock(mutex_);
    while (!started->done) wait_or_run(lock);
  }
  bool runs_here() const {
    const std::lock_guard lock(mutex_);
    return runner_ == std::this_thread::get_id();
  }
  void drain() {
    std::unique_lock lock(mutex_);
    if (runner_ == std::this_thread::get_id()) return;
    while (!waiting_.empty()) wait_or_run(lock);
  }

 private:
  std::atomic<int>& count_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<handle> waiting_;  // the front one may be running
  std::thread worker_;
  std::thread::id runner_;  // of the running job
  bool ends_ = false;

  void wait_or_run(std::unique_lock<std::mutex>& lock) {
    if (worker_.joinable() || runner_ != std::thread::id()) changed_.wait(lock);
    else run_front(lock);
  }
  void run_front(std::unique_lock<std::mutex>& lock) {
    const handle front = waiting_.front();
    runner_ = std::this_thread::get_id();
    lock.unlock();
    try {
      front->run();
    } catch (...) {
      front->error = std::current_exception();
    }
    lock.lock();
    runner_ = {};
    front->done = true;
    waiting_.pop_front();
    --count_;
    changed_.notify_all();
  }
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      run_front(lock);
    }
  }
};

GSHARD_INLINE run_queue::run_queue() : state_(std::make_unique<state>(waiting_)) {}
GSHARD_INLINE run_queue::~run_queue() = default;
GSHARD_INLINE run_queue::handle run_queue::start(callback<void()> run, bool threads) { return state_->start(std::move(run), threads); }
GSHARD_INLINE void run_queue::finish(const handle& started) { state_->finish(started); }
GSHARD_INLINE void run_queue::drain_all() { state_->drain(); }
GSHARD_INLINE bool run_queue::runs_here() const { return state_->runs_here(); }

#endif

}}  // namespace gshard::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A thread that runs jobs of one object in the background, such as writing a checkpoint.

#include <gshard/exec/process/error.hpp>
#include <gshard/exec/process/thread_without_signals.hpp>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace gshard { inline namespace v0 { namespace detail {

/// Runs one job at a time in a thread of its own, which neither gets signals nor calls MPI. The destructor
/// waits for the job.
class background_writer {
 public:
  background_writer() = default;
  background_writer(const background_writer&) = delete;
  background_writer& operator=(const background_writer&) = delete;
  ~background_writer() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  /// Waits for the last job, and starts another one. Throws `gshard::error` if no thread can be made.
  void start(std::function<void()> job) {
    wait();
    if (!thread_.joinable()) thread_ = thread_without_signals([this] { work(); });
    {
      const std::lock_guard lock(mutex_);
      job_ = std::move(job);
    }
    changed_.notify_all();
  }
  /// True while a job is not done.
  bool busy() const {
    const std::lock_guard lock(mutex_);
    return bool(job_);
  }
  /// Waits until the job is done, or the time is over.
  void wait_at_most(std::chrono::milliseconds time) const {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, time, [this] { return !job_; });
  }
  /// Waits for the job. Returns the text of its error, or nothing.
  std::string wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !job_; });
    return problem_;
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ends_ || job_; });
      if (!job_) return;
      lock.unlock();
      std::string problem;
      try {
        job_();
      } catch (const std::exception& e) {
        problem = e.what();
      } catch (...) {
        problem = "an exception without a text";
      }
      lock.lock();
      problem_ = std::move(problem);
      job_ = nullptr;
      changed_.notify_all();
    }
  }

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::function<void()> job_;
  std::string problem_;
  bool ends_ = false;
  std::thread thread_;
};

}}}  // namespace gshard::v0::detail

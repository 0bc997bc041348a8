// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The open event logs of this process: failures of the run are written to all of them.

#include <gshard/exec/process/error.hpp>
#include <gshard/exec/process/failure_hooks.hpp>
#include <gshard/exec/process/thread_without_signals.hpp>
#include <gshard/survive/log/event_log_file.hpp>

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// Writes "not_finite" when a not_finite_error is thrown, and "abort" when the process ends itself or leaves a run_scope by an exception.
class open_event_logs {
 public:
  static void add(const std::shared_ptr<event_log_file>& log) {
    const std::scoped_lock lock(get().mutex_);
    std::erase_if(get().logs_, [](const std::weak_ptr<event_log_file>& w) { return w.expired(); });
    get().logs_.push_back(log);
  }

 private:
  open_event_logs() {
    failure_hooks::get().not_finite = [](const std::string& text, std::uint32_t step) {
      problem_of([&] { write("not_finite", {{"step", step}, {"text", text}}); });
    };
    failure_hooks::get().abort = write_abort;
  }
  static open_event_logs& get() {
    static open_event_logs* const one = new open_event_logs;  // never destroyed: a thread may use it until the end
    return *one;
  }
  static void write(const char* event, const nlohmann::ordered_json& fields) {
    std::vector<std::shared_ptr<event_log_file>> open;
    {
      const std::scoped_lock lock(get().mutex_);
      for (const std::weak_ptr<event_log_file>& w : get().logs_)
        if (auto log = w.lock()) open.push_back(std::move(log));
    }
    for (const auto& log : open) log->write(event, fields);
  }
  /// Another thread writes, for at most a second, so that the process ends even if its disk hangs.
  static void write_abort(const std::string& why) {
    problem_of([&] {
      const auto done = std::make_shared<std::promise<void>>();
      thread_without_signals([why, done] {
        problem_of([&] { write("abort", {{"text", why}}); });
        done->set_value();
      }).detach();
      done->get_future().wait_for(std::chrono::seconds(1));
    });
  }

  std::mutex mutex_;
  std::vector<std::weak_ptr<event_log_file>> logs_;
};

}}}  // namespace gshard::v0::detail

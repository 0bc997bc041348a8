// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The thread that writes telemetry, so that no step waits for a disk.

#include <gshard/exec/process/error.hpp>
#include <gshard/exec/process/thread_without_signals.hpp>
#include <gshard/io/file.hpp>
#include <gshard/survive/files/directory.hpp>
#include <gshard/survive/files/log_file.hpp>
#include <gshard/survive/monitor/telemetry_sample.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// Removes the files that processes of an earlier run left in the directory for Prometheus, "gshard-00003.prom": this run may have fewer.
/// Files of other users, files with other content, and files that cannot be removed stay.
inline void remove_old_states(const std::string& path) {
  problem_of([&] {
    const auto in = directory::find(path);
    if (!in) return;
    for (const std::string& name : in->names()) {
      if (!name.starts_with("gshard-") || !name.ends_with(".prom") || !in->has_file(name)) continue;
      problem_of([&] {  // another process may remove it now
        const auto [file, size] = in->read(name);
        struct stat status;
        std::string begin(std::min<std::size_t>(std::size_t(size), telemetry_totals::begin.size()), ' ');
        read_at(file, in->path_of(name), 0, std::as_writable_bytes(std::span(begin)));
        if (::fstat(file.get(), &status) == 0 && status.st_uid == ::geteuid() && begin == telemetry_totals::begin) in->remove(name);
      });
    }
  });
}

/// Takes samples and writes them every second: lines of JSON to one file, the state in Prometheus' format to another.
class telemetry_writer {
 public:
  struct target {
    std::string lines;       ///< path, or empty
    std::string prometheus;  ///< path, or empty
    double prometheus_seconds = 5;
    std::uint32_t lists_every = 10;  ///< steps
    std::map<std::string, std::string> labels;
    std::function<void(const std::string&)> report;
    std::uint32_t every = 1;  ///< steps per line. Skipped steps have a line unless it is 0.
  };

  /// `first_line`: written before the first sample. Throws `gshard::error` if the file of lines cannot be opened.
  telemetry_writer(target to, std::string first_line) : to_(std::move(to)), text_(std::move(first_line)) {
    totals_.labels = to_.labels;
    totals_.start = unix_seconds();
    if (!to_.lines.empty()) {
      file_.emplace(open_to_append(to_.lines));
      set_mode(*file_, to_.lines, 0600);
      char last = '\n';  // a killed process may have left a line without an end
      const off_t size = ::lseek(file_->get(), 0, SEEK_END);
      if (size > 0 && ::pread(file_->get(), &last, 1, size - 1) == 1 && last != '\n') text_ = "\n" + text_;
    } else {
      text_.clear();
    }
    thread_ = thread_without_signals([this] { work(); });
  }
  telemetry_writer(const telemetry_writer&) = delete;
  telemetry_writer& operator=(const telemetry_writer&) = delete;
  ~telemetry_writer() {
    {
      const std::scoped_lock lock(mutex_);
      stop_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

  void add(telemetry_sample&& sample) {
    const std::scoped_lock lock(mutex_);
    if (samples_.size() < most_samples) samples_.push_back(std::move(sample));
  }
  void set_straggler(const std::string& process, bool is_one) {
    const std::scoped_lock lock(mutex_);
    stragglers_[process] = is_one ? 1 : 0;
  }

 private:
  static constexpr std::size_t most_samples = std::size_t(1) << 16;  // while the thread hangs in a write
  static constexpr std::size_t most_text = std::size_t(1) << 26;     // bytes that the disk does not take

  target to_;
  std::string text_;  // lines that are not written yet
  std::optional<descriptor> file_;
  telemetry_totals totals_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<telemetry_sample> samples_;      // guarded by `mutex_`
  std::map<std::string, double> stragglers_;  // guarded by `mutex_`
  bool stop_ = false;                          // guarded by `mutex_`
  bool told_ = false;
  std::thread thread_;

  void work() {
    double exposed = 0;
    const auto expose = [&](double now) {
      if (to_.prometheus.empty()) return;
      exposed = now;
      const std::string text = totals_.prometheus();
      tell(problem_of([&] {
        atomic_file file(to_.prometheus, 0644);  // for all: node exporter is another user
        file.append(std::as_bytes(std::span(text)));
        file.commit();
      }).text);
    };
    expose(unix_seconds());  // so that a run that hangs before its first step is noticed
    for (bool last = false; !last;) {
      std::vector<telemetry_sample> taken;
      {
        std::unique_lock lock(mutex_);
        wake_.wait_for(lock, std::chrono::seconds(1), [this] { return stop_; });
        taken.swap(samples_);
        totals_.stragglers = stragglers_;
        last = stop_;
      }
      for (const telemetry_sample& s : taken) {
        totals_.add(s);
        if (!file_ || text_.size() >= most_text || to_.every == 0 || (s.step % to_.every != 0 && !s.skipped)) continue;
        text_ += json_line(s, to_.lists_every > 0 && s.step % to_.lists_every == 0);
      }
      if (file_) tell(append_text(*file_, to_.lines, text_));
      totals_.running = !last;
      if (const double now = unix_seconds(); last || now - exposed >= to_.prometheus_seconds) expose(now);
    }
  }
  void tell(const std::string& problem) {
    if (problem.empty() || std::exchange(told_, true)) return;
    problem_of([&] { to_.report("telemetry: " + problem); });
  }
};

}}}  // namespace gshard::v0::detail

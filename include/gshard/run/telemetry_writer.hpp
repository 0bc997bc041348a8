// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The thread that writes telemetry, so that no step waits for a disk.

#include <gshard/io/file.hpp>
#include <gshard/run/event_log.hpp>
#include <gshard/run/telemetry_sample.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

inline double unix_seconds() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

/// Replaces a file by a text that all users may read. Its name has the new content, or the old one, at every moment.
inline void replace_public_file(const std::string& path, const std::string& text) {
  static std::atomic<unsigned> number{0};
  const std::string directory = directory_of(path), temporary = directory + (directory.ends_with('/') ? "." : "/.") +
      path.substr(path.find_last_of('/') + 1) + "." + std::to_string(::getpid()) + "." + std::to_string(number++) + ".tmp";
  const descriptor file(open_file(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644));
  if (file.get() < 0) throw_errno(path, "its " + temporary + " cannot be made");
  try {
    write_at(file, path, 0, std::as_bytes(std::span(text)));
    if (::fchmod(file.get(), 0644) != 0 || ::rename(temporary.c_str(), path.c_str()) != 0) throw_errno(path, "cannot be replaced");
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
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
  };

  /// `first_line`: written before the first sample. Throws `gshard::error` if the file of lines cannot be opened.
  telemetry_writer(target to, std::string first_line) : to_(std::move(to)), text_(std::move(first_line)) {
    totals_.labels = to_.labels;
    totals_.start = unix_seconds();
    if (!to_.lines.empty()) {
      file_.emplace(open_to_append(to_.lines));
      ::fchmod(file_->get(), 0600);
      char last = '\n';  // a killed process may have left a line without an end
      const off_t size = ::lseek(file_->get(), 0, SEEK_END);
      if (size > 0 && ::pread(file_->get(), &last, 1, size - 1) == 1 && last != '\n') text_ = "\n" + text_;
    } else {
      text_.clear();
    }
    sigset_t all, before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);  // signals belong to the application's threads
    thread_ = std::thread([this] { work(); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
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
  static constexpr std::size_t most_text = std::size_t(1) << 26;     // that the disk does not take

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
        if (file_ && text_.size() < most_text) text_ += json_line(s, to_.lists_every > 0 && s.step % to_.lists_every == 0);
      }
      if (file_) tell(append_text(*file_, to_.lines, text_));
      const double now = unix_seconds();
      if (to_.prometheus.empty() || (!last && now - exposed < to_.prometheus_seconds)) continue;
      exposed = now;
      totals_.running = !last;
      tell(problem_of([&] { replace_public_file(to_.prometheus, totals_.prometheus()); }));
    }
  }
  void tell(const std::string& problem) {
    if (!problem.empty() && !std::exchange(told_, true)) to_.report("telemetry: " + problem);
  }
};

}}}  // namespace gshard::v0::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The file of an event log: opens it, continues its chain of hashes, and appends records.

#include <gshard/exec/process/error.hpp>
#include <gshard/io/file.hpp>
#include <gshard/survive/files/log_file.hpp>
#include <gshard/survive/files/sha256.hpp>
#include <gshard/survive/log/event_log_check.hpp>

#include <nlohmann/json.hpp>

#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace gshard { inline namespace v0 { namespace detail {

/// Any thread may call its functions. @see event_log
class event_log_file {
 public:
  using reporter = std::function<void(const std::string&)>;

  /// Throws `gshard::error` as the constructor of `event_log` does.
  event_log_file(std::string path, reporter report)
      : path_(std::move(path)), report_(report ? std::move(report) : reporter(tell_on_stderr)), file_(open(path_)) {
    const event_log_finding found = check_event_log(path_);
    if (!found.unaltered && !found.is_cut)
      throw error(found.text + ". A log with a broken chain is not continued; keep it, and move it away");
    set_mode(file_, path_, 0600);
    last_ = written_ = durable_ = {base_name(path_), found.records, found.hash};
    if (found.is_cut) pending_ = "\n";
    if (!found.unaltered) write(continued, {{"cut_bytes", found.rest.size()}, {"cut_sha256", sha256_of(found.rest)}});
  }

  const std::string& path() const { return path_; }

  void write(std::string_view event, const nlohmann::ordered_json& fields) {
    using json = nlohmann::ordered_json;
    const auto text_of = [](const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); };
    std::string given = text_of(fields);
    if (given.size() > most_bytes) given = text_of({{"left_out_bytes", given.size()}});
    const std::scoped_lock lock(mutex_);
    std::string line = "{\"n\":" + std::to_string(++last_.records) + ",\"time\":\"" + utc_text(std::chrono::system_clock::now()) +
                       "\",\"event\":" + text_of(event) + ",\"fields\":" + given + ",\"previous\":\"" + last_.hash + "\"";
    last_.hash = sha256_of(line);
    pending_ += line + ",\"hash\":\"" + last_.hash + "\"}\n";
    append();
  }
  event_log_head head() {
    const std::scoped_lock lock(mutex_);
    append();
    const event_log_head here = written_;
    const process_error problem = problem_of([&] { flush(file_, path_); });
    if (problem.empty()) durable_ = here;
    else tell(problem.text);
    return durable_;
  }

 private:
  static constexpr std::size_t most_bytes = std::size_t(1) << 16;
  std::string path_;
  reporter report_;
  descriptor file_;
  std::mutex mutex_;
  event_log_head last_, written_, durable_;  // after all records, those in the file, and those on the disk
  std::string pending_;                      // text that could not be written yet
  bool told_ = false;

  void append() {
    const std::string problem = append_text(file_, path_, pending_);
    if (!problem.empty()) return tell(problem);
    written_ = last_;
    told_ = false;
  }
  void tell(const std::string& problem) {
    if (std::exchange(told_, true)) return;
    problem_of([&] { report_("event log: " + problem + "; later events are kept in memory until it can be written"); });
  }

  /// Opens the file when no other process has it. A process that is being killed may have it for a moment.
  static descriptor open(const std::string& path) {
    descriptor file = open_to_append(path);
    for (int attempt = 0; ::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; ++attempt) {
      if (attempt == 50) throw error(path + ": another process writes to it");
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return file;
  }
};

}}}  // namespace gshard::v0::detail

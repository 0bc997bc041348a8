// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The event log of a run: what happened when, in records that are chained by their hashes.

#include <gshard/base/version.hpp>
#include <gshard/comm/agreement.hpp>
#include <gshard/exec/executor.hpp>
#include <gshard/io/file.hpp>
#include <gshard/report/describe.hpp>
#include <gshard/run/event_log_check.hpp>
#include <gshard/run/sha256.hpp>
#include <gshard/tensor/cluster.hpp>

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

namespace detail {

/// "2026-11-24T08:23:13.123456Z"
inline std::string utc_text(std::chrono::system_clock::time_point when) {
  const auto all = std::chrono::duration_cast<std::chrono::microseconds>(when.time_since_epoch()).count();
  const std::time_t seconds = std::time_t(all / 1000000);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char day[32], text[48];
  std::strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text, sizeof text, "%s.%06dZ", day, int(all % 1000000));
  return text;
}

/// A file per process: "events-00003.jsonl". A process has the number of its first device.
inline std::string file_of_process(const std::string& directory, const char* kind, int process, const char* ending) {
  char number[16];
  std::snprintf(number, sizeof number, "%05d", process);
  return directory + (directory.empty() || directory.ends_with('/') ? "" : "/") + kind + "-" + number + ending;
}

/// Makes a directory and those above it, if they do not exist, for this user alone.
inline void make_private_directory(const std::string& path) {
  for (std::size_t end = 0; end != path.npos;) {
    end = path.find('/', end + 1);
    const std::string part = path.substr(0, end);
    if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST && errno != EISDIR) throw_errno(part, "cannot be made");
  }
  struct stat status;
  if (::stat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) throw error(path + ": is not a directory");
}

/// Opens or makes a regular file for this user alone, to which lines are appended. Symbolic links are not followed.
inline descriptor open_to_append(const std::string& path) {
  descriptor file(open_file(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600));
  struct stat status;
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0)
    throw_errno(path, errno == ELOOP ? "is a symbolic link" : "cannot be opened");
  if (!S_ISREG(status.st_mode)) throw error(path + ": is not a regular file");
  return file;
}

/// Appends as much of a text as the disk takes, and removes that from the text. Returns why some is left, or nothing.
inline std::string append_text(const descriptor& file, const std::string& path, std::string& text) {
  std::size_t done = 0;
  int code = 0;
  while (done < text.size() && code == 0) {
    const ssize_t n = ::write(file.get(), text.data() + done, text.size() - done);
    if (n > 0) done += std::size_t(n);
    else if (n == 0 || errno != EINTR) code = n == 0 ? EIO : errno;
  }
  text.erase(0, done);
  return code == 0 ? std::string() : path + ": cannot be written: " + std::generic_category().message(code);
}

inline void tell_on_stderr(const std::string& text) {
  const std::string line = "gshard: " + text + "\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace detail

/// The log of what happens in a run, for those who run it and those who audit it: one file per process, one JSON object per line.
///
/// A record has a number `n`, the wall time, the event, its fields, and the hash of the record before it. Its own hash is SHA-256 of the
/// line before `,"hash"`. Events of the library are start, mesh, plan, checkpoint, load, roll_back, not_finite, straggler, stop, abort and
/// continued; a program may write others. The file is for this user alone (0600) and is only appended to. A restarted run checks the file and
/// continues its chain. A line that a killed process left incomplete stays; the record "continued" after it has its hash.
///
/// Who can write the file can also write a new chain. A head that is kept elsewhere prevents that for the records before it:
/// checkpoints seal the heads in their manifests. @see check_event_log
class event_log {
 public:
  using reporter = std::function<void(const std::string&)>;

  /// The log at `path`, of this process alone. `report`: gets a text when records cannot be written; by default stderr.
  /// Throws `gshard::error`: if the file cannot be opened, is a symbolic link or in use by another process; if its chain is broken, with
  /// the first altered record. Then the file is unchanged.
  explicit event_log(std::string path, reporter report = {})
      : path_(std::move(path)), report_(report ? std::move(report) : reporter(detail::tell_on_stderr)), file_(open(path_)) {
    const event_log_finding found = check_event_log(path_);
    if (!found.unaltered && !found.is_cut)
      throw error(found.text + ". A log with a broken chain is not continued; keep it, and move it away");
    ::fchmod(file_.get(), 0600);
    last_ = written_ = durable_ = {detail::base_name(path_), found.records, found.hash};
    if (found.is_cut) pending_ = "\n";
    if (!found.unaltered) write(detail::continued, {{"cut_bytes", found.rest.size()}, {"cut_sha256", sha256_of(found.rest)}});
  }
  /// The logs of all processes of a cluster: `directory`/events-00003.jsonl for process 3. Makes the directory, if there is none, for this
  /// user alone. Writes the events "start" and "mesh". Collective.
  /// Communicates: one small message per process. Throws `gshard::error`, on every process, as above.
  event_log(const any_cluster& on, const std::string& directory, reporter report = {})
      : event_log(opened(on, directory, std::move(report))) {
    write("start", {{"process", on.devices().front()}, {"processes", on.on().processes()}, {"host", detail::host_name()},
                    {"pid", ::getpid()}, {"version", version}});
    nlohmann::ordered_json axes = nlohmann::ordered_json::object();
    for (int a = 0; a < on.mesh().rank(); ++a) axes[std::string(on.mesh().name(a))] = on.extent(a);
    write("mesh", {{"axes", std::move(axes)}});
  }
  event_log(event_log&& other) noexcept
      : path_(std::move(other.path_)), report_(std::move(other.report_)), file_(std::move(other.file_)), last_(std::move(other.last_)),
        written_(std::move(other.written_)), durable_(std::move(other.durable_)), pending_(std::move(other.pending_)), told_(other.told_) {}

  const std::string& path() const { return path_; }

  /// Appends a record. Never throws for the disk, so that no process leaves the others alone: what cannot be written is kept and written
  /// before the next record. Any thread may call it. `fields`: an object; more than 64 KiB of it are replaced by their number.
  void write(std::string_view event, nlohmann::ordered_json fields = nlohmann::ordered_json::object()) {
    using json = nlohmann::ordered_json;
    const auto text_of = [](const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); };
    std::string given = text_of(fields);
    if (given.size() > most_bytes) given = text_of({{"left_out_bytes", given.size()}});
    const std::scoped_lock lock(mutex_);
    std::string line = "{\"n\":" + std::to_string(++last_.records) + ",\"time\":\"" + detail::utc_text(std::chrono::system_clock::now()) +
                       "\",\"event\":" + text_of(event) + ",\"fields\":" + given + ",\"previous\":\"" + last_.hash + "\"";
    last_.hash = sha256_of(line);
    pending_ += line + ",\"hash\":\"" + last_.hash + "\"}\n";
    flush();
  }
  /// Writes the event "plan" of a program: its steps, the bytes of its values per device, and SHA-256 of its description.
  void write_plan(std::string_view program, const executor& run) {
    write("plan", {{"program", program}, {"steps", run.plan().steps.size()}, {"arena_bytes", run.arena_bytes()},
                   {"sha256", sha256_of(describe(run.plan()))}});
  }

  /// The number of records and the hash of the last one, to be sealed elsewhere. Returns when these records are on the disk, which takes
  /// milliseconds. Records that could not be written are not counted.
  event_log_head head() {
    const std::scoped_lock lock(mutex_);
    flush();
    const event_log_head here = written_;
    const std::string problem = detail::problem_of([&] { detail::flush(file_, path_); });
    if (problem.empty()) durable_ = here;
    else tell(problem);
    return durable_;
  }

 private:
  static constexpr std::size_t most_bytes = std::size_t(1) << 16;
  std::string path_;
  reporter report_;
  detail::descriptor file_;
  std::mutex mutex_;
  event_log_head last_, written_, durable_;  // of all records; of those in the file; of those on the disk
  std::string pending_;            // what could not be written yet
  bool told_ = false;

  void flush() {
    const std::string problem = detail::append_text(file_, path_, pending_);
    if (!problem.empty()) return tell(problem);
    written_ = last_;
    told_ = false;
  }
  void tell(const std::string& problem) {
    if (!std::exchange(told_, true)) report_("event log: " + problem + "; later events are kept in memory until it can be written");
  }

  /// The file, once no other process has it: one that is being ended may have it for a moment.
  static detail::descriptor open(const std::string& path) {
    detail::descriptor file = detail::open_to_append(path);
    for (int attempt = 0; ::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; ++attempt) {
      if (attempt == 50) throw error(path + ": another process writes to it");
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return file;
  }
  static event_log opened(const any_cluster& on, const std::string& directory, reporter report) {
    std::vector<event_log> made;
    const std::string problem = detail::problem_of([&] {
      detail::make_private_directory(directory);
      made.emplace_back(detail::file_of_process(directory, "events", on.devices().front(), ".jsonl"), std::move(report));
    });
    on.on().begin(std::vector<fact>{{"the call", "opening an event log"}}, problem);
    return std::move(made.front());
  }
};

}}  // namespace gshard::v0

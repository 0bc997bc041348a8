// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A lock of a run's directory, which keeps a second process from running in it.

#include <gshard/exec/process/error.hpp>
#include <gshard/io/file.hpp>
#include <gshard/survive/files/directory.hpp>

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

inline const std::string lock_file = ".lock";

/// Holds the lock of a directory until it is destroyed or the process ends. The kernel keeps the lock, so a killed run leaves none. Child
/// processes do not inherit it. The file `.lock` names the holder. Objects of one process share the lock of a directory.
class directory_lock {
 public:
  /// The reason why there is no lock. `held`: another process has it. Otherwise the file system has no locks, or the file cannot be used.
  struct refusal {
    bool held = false;
    std::string text;
  };

  /// Locks a directory. If another process has the lock, such as one that is being killed, waits at most `seconds` for it.
  static std::optional<directory_lock> take(const directory& in, double seconds, refusal& why) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(std::min(seconds, 1e6));
    for (;; std::this_thread::sleep_for(std::chrono::milliseconds(50))) {
      std::optional<directory_lock> lock;
      const bool last = std::chrono::steady_clock::now() >= end;
      why = {};
      const process_error problem = problem_of([&] { lock = try_once(in, why); });
      if (lock) return lock;
      if (!problem.empty()) why = {false, problem.text};
      if (!why.held || last) return std::nullopt;
    }
  }
  /// True if both are the lock of one file.
  bool same_as(const directory_lock& other) const { return file_ == other.file_; }
  directory_lock(directory_lock&& other) noexcept : file_(std::exchange(other.file_, std::nullopt)) {}
  directory_lock& operator=(directory_lock&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~directory_lock() {
    if (!file_) return;
    const std::lock_guard guard(locks().mutex);
    const auto it = locks().held.find(*file_);
    if (it != locks().held.end() && --it->second.users == 0) locks().held.erase(it);
  }

 private:
  struct held_file {
    std::vector<descriptor> files;
    pid_t process = 0;
    int users = 0;
  };
  /// The locks of this process. A lock ends when the process closes any descriptor of the file, so they are all kept.
  struct table {
    std::mutex mutex;
    std::map<directory::identity, held_file> held;
  };
  static table& locks() {
    static table all;
    return all;
  }
  static constexpr std::string_view begin = "gshard lock: ";

  explicit directory_lock(directory::identity file) : file_(file) {}

  static struct flock whole_file(short type) {
    struct flock all{};
    all.l_type = type;
    all.l_whence = SEEK_SET;
    return all;
  }
  static std::optional<directory_lock> try_once(const directory& in, refusal& why) {
    table& all = locks();
    const std::lock_guard guard(all.mutex);
    if (const auto known = in.identity_of(lock_file); known && is_held(*known)) return locked_again(in, *known, why);
    descriptor file = in.open(lock_file);
    const auto opened = directory::identity_of(file);
    if (!opened) throw_errno(in.path_of(lock_file), "cannot be opened");
    if (is_held(*opened)) {
      all.held.at(*opened).files.push_back(std::move(file));
      return shared(*opened);
    }
    const std::string before = text_in(file, in);
    if (!before.empty() && !before.starts_with(begin)) throw error(in.path_of(lock_file) + ": is not the lock of a run");
    struct flock wanted = whole_file(F_WRLCK);
    if (uninterrupted([&] { return ::fcntl(file.get(), F_SETLK, &wanted); }) != 0) {
      if (errno != EAGAIN && errno != EACCES) throw_errno(in.path_of(lock_file), "cannot be locked");
      struct flock other = whole_file(F_WRLCK);
      if (::fcntl(file.get(), F_GETLK, &other) != 0 || other.l_type == F_UNLCK) other.l_pid = 0;
      why = {true, in.path() + ": another run uses this directory" + holder_text(before, other.l_pid)};
      return std::nullopt;
    }
    if (in.identity_of(lock_file) != opened) {  // somebody has removed the file meanwhile
      why = {true, in.path_of(lock_file) + ": was removed while it was opened"};
      return std::nullopt;
    }
    problem_of([&] {  // a full disk may refuse the text
      ::fchmod(file.get(), 0600);
      resize(file, in.path_of(lock_file), 0, 0);
      const std::string text = std::string(begin) + "process " + std::to_string(::getpid()) + " on host " + host_name() + "\n";
      write_at(file, in.path_of(lock_file), 0, std::as_bytes(std::span(text)));
    });
    held_file& mine = all.held[*opened];  // may exist already, from a parent process
    mine.process = ::getpid();
    mine.files.push_back(std::move(file));
    return shared(*opened);
  }
  static bool is_held(const directory::identity& file) {
    const auto it = locks().held.find(file);
    return it != locks().held.end() && it->second.process == ::getpid();
  }
  /// The lock of this process. Takes it again if the process has lost it by closing another descriptor of the file.
  static std::optional<directory_lock> locked_again(const directory& in, const directory::identity& known, refusal& why) {
    const descriptor& file = locks().held.at(known).files.front();
    struct flock wanted = whole_file(F_WRLCK);
    if (uninterrupted([&] { return ::fcntl(file.get(), F_SETLK, &wanted); }) == 0) return shared(known);
    if (errno != EAGAIN && errno != EACCES) throw_errno(in.path_of(lock_file), "cannot be locked");
    why = {true, in.path() + ": another run uses this directory" + holder_text(text_in(file, in), 0)};
    return std::nullopt;
  }
  static directory_lock shared(const directory::identity& file) {
    ++locks().held.at(file).users;
    return directory_lock(file);
  }
  static std::string text_in(const descriptor& file, const directory& in) {
    std::string text(512, ' ');
    const ssize_t n = uninterrupted([&] { return ::pread(file.get(), text.data(), text.size(), 0); });
    if (n < 0) throw_errno(in.path_of(lock_file), "cannot be read");
    return text.substr(0, std::size_t(n));
  }
  /// ": process 7 on host n3". The kernel knows only processes of this host.
  static std::string holder_text(std::string written, pid_t process) {
    if (written.ends_with('\n')) written.pop_back();
    const std::string known = process > 0 ? "process " + std::to_string(process) : "";
    if (written.size() > begin.size() && (known.empty() || written.find(known + " on host ") != written.npos))
      return ": " + written.substr(begin.size());
    return known.empty() ? "" : ": " + known + " on this host";
  }

  std::optional<directory::identity> file_;  // empty: moved from
};

}}}  // namespace gshard::v0::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Append-only files of a run, one per process, for their user alone: their names, and times as text.

#include <gshard/exec/process/error.hpp>
#include <gshard/exec/process/standard_error.hpp>
#include <gshard/io/file.hpp>
#include <gshard/survive/files/directory.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <string>
#include <system_error>

namespace gshard { inline namespace v0 { namespace detail {

/// "2026-11-24T08:23:13.123456Z"
inline std::string utc_text(std::chrono::system_clock::time_point when) {
  const auto all = std::chrono::duration_cast<std::chrono::microseconds>(when.time_since_epoch()).count();
  const std::time_t seconds = all / 1000000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char day[32], text[48];
  std::strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text, sizeof text, "%s.%06dZ", day, int(all % 1000000));
  return text;
}
/// Seconds since 1970.
inline double unix_seconds() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

/// A file per process: "events-00003.jsonl". A process has the number of its first device.
inline std::string file_of_process(const std::string& directory, const char* kind, int process, const char* ending) {
  char number[16];
  std::snprintf(number, sizeof number, "%05d", process);
  return directory + (directory.empty() || directory.ends_with('/') ? "" : "/") + kind + "-" + number + ending;
}

/// Opens or makes a regular file of this user, to which lines are appended. Its directory entry is on the disk afterwards. Symbolic links
/// are not followed. Throws `gshard::error` also if the file belongs to another user, who could always change it.
inline descriptor open_to_append(const std::string& path) {
  descriptor file(open_file(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600));
  struct stat status;
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0)
    throw_errno(path, errno == ELOOP ? "is a symbolic link" : "cannot be opened");
  if (!S_ISREG(status.st_mode)) throw error(path + ": is not a regular file");
  if (status.st_uid != ::geteuid()) throw error(path + ": belongs to another user, who could change it");
  directory::at(directory_of(path)).sync();  // even for an old file: its process may have been killed before it did that
  return file;
}

/// Sets the permissions of an open file, independently of the umask.
inline void set_mode(const descriptor& file, const std::string& path, mode_t mode) {
  if (uninterrupted([&] { return ::fchmod(file.get(), mode); }) != 0) throw_errno(path, "its permissions cannot be set");
}

/// Appends as much of a text as the disk takes, and removes it from the text. Returns the error if some is left, or nothing.
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

inline void tell_on_stderr(const std::string& text) { write_to_stderr("gshard: " + text + "\n"); }

}}}  // namespace gshard::v0::detail

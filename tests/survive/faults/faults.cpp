// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A library for LD_PRELOAD. It makes the n-th system call on files fail, or all from the n-th on. It also records calls that change files
// and directories in a journal.
#include "faults.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>

namespace {

std::atomic<int> first = 0;  // 0: no call fails
std::atomic<int> calls = 0;
std::atomic<int> kind = 0;
std::atomic<bool> all_later = false;

/// Counts a call. True if it fails.
bool hits() {
  if (first == 0) return false;
  const int now = ++calls;
  return now == first || (all_later && now > first);
}
/// True if the call fails, with errno set. Only writes and reads can be short.
bool fails() {
  if (!hits() || kind == faults::short_write) return false;
  errno = kind;
  return true;
}
/// True for files and directories, but not for MPI's sockets and shared memory.
bool counts(int fd) {
  struct stat status;
  return fd > 2 && ::fstat(fd, &status) == 0 && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
}
bool counts(const char* path) {
  const std::string_view name = path;
  return !name.starts_with("/dev/") && !name.starts_with("/proc/") && !name.starts_with("/sys/");
}
template <class File>
bool fails(File of) {
  return first != 0 && counts(of) && fails();
}
/// The number of bytes to write, or -1.
ssize_t room(int fd, std::size_t n) {
  if (first == 0 || !counts(fd) || !hits()) return ssize_t(n);
  if (kind == faults::short_write) return ssize_t(std::max<std::size_t>(1, n / 2));
  errno = kind;
  return -1;
}
template <class F>
F* next(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

// The journal: a line for each call, with the number of the file, or the directory and the name.
std::atomic<bool> keeps_journal = false;
std::mutex journal_lock;
std::string journal;

/// Appends a line if the call has succeeded. Preserves errno.
template <class Result, class Text>
Result note(Result result, Text text) {
  if (!keeps_journal || result < 0) return result;
  const int code = errno;
  const std::scoped_lock lock(journal_lock);
  journal += text() + "\n";
  errno = code;
  return result;
}
std::string number_of(int in, const char* path) {
  struct stat status;
  return ::fstatat(in, path, &status, AT_SYMLINK_NOFOLLOW) == 0 ? std::to_string(status.st_ino) : "0";
}
/// The number of its directory, and its name.
std::string entry(int in, const char* path) {
  const std::string_view whole = path;
  const std::size_t slash = whole.rfind('/');
  const std::string folder(slash == whole.npos ? "." : slash == 0 ? "/" : whole.substr(0, slash));
  struct stat status;
  const bool known = ::fstatat(in, folder.c_str(), &status, 0) == 0;
  return (known ? std::to_string(status.st_ino) : "0") + " " + std::string(whole.substr(slash + 1));  // npos + 1 is 0
}
template <class Result>
Result changed(Result result, int fd, const char* how = "write") {
  struct stat status;
  if (!keeps_journal || !counts(fd) || ::fstat(fd, &status) != 0) return result;
  return note(result, [&] { return std::string(how) + " " + std::to_string(status.st_ino); });
}
int made(int result, int in, const char* path, bool is_new = true) {
  return is_new ? note(result, [&] { return "make " + entry(in, path) + " " + number_of(in, path); }) : result;
}
bool is_missing(int in, const char* path, int flags) {
  const int code = errno;
  const bool missing = keeps_journal && (flags & O_CREAT) != 0 && number_of(in, path) == "0";
  errno = code;
  return missing;
}

mode_t mode_of(int flags, std::va_list& more) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? mode_t(va_arg(more, unsigned)) : 0;
}

}  // namespace

extern "C" {

void gshard_fail(int nth, int how, int later) {
  calls = 0;
  kind = how;
  all_later = later != 0;
  first = nth;
}
int gshard_calls() {
  return calls;
}

void gshard_keep_journal(int keep) {
  const std::scoped_lock lock(journal_lock);
  if (keep) journal.clear();
  keeps_journal = keep != 0;
}
const char* gshard_journal() {
  return journal.c_str();
}

int open(const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  if (fails(path)) return -1;
  const bool is_new = is_missing(AT_FDCWD, path, flags);
  return made(next<int(const char*, int, mode_t)>("open")(path, flags, mode), AT_FDCWD, path, is_new);
}
int open64(const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  if (fails(path)) return -1;
  const bool is_new = is_missing(AT_FDCWD, path, flags);
  return made(next<int(const char*, int, mode_t)>("open64")(path, flags, mode), AT_FDCWD, path, is_new);
}
int openat(int at, const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  if (fails(path)) return -1;
  const bool is_new = is_missing(at, path, flags);
  return made(next<int(int, const char*, int, mode_t)>("openat")(at, path, flags, mode), at, path, is_new);
}
int openat64(int at, const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  if (fails(path)) return -1;
  const bool is_new = is_missing(at, path, flags);
  return made(next<int(int, const char*, int, mode_t)>("openat64")(at, path, flags, mode), at, path, is_new);
}
ssize_t write(int fd, const void* data, std::size_t n) {
  const ssize_t most = room(fd, n);
  return most < 0 ? -1 : changed(next<ssize_t(int, const void*, std::size_t)>("write")(fd, data, std::size_t(most)), fd);
}
ssize_t pwrite(int fd, const void* data, std::size_t n, off_t at) {
  const ssize_t most = room(fd, n);
  return most < 0 ? -1 : changed(next<ssize_t(int, const void*, std::size_t, off_t)>("pwrite")(fd, data, std::size_t(most), at), fd);
}
ssize_t pwrite64(int fd, const void* data, std::size_t n, off64_t at) {
  const ssize_t most = room(fd, n);
  return most < 0 ? -1 : changed(next<ssize_t(int, const void*, std::size_t, off64_t)>("pwrite64")(fd, data, std::size_t(most), at), fd);
}
ssize_t pread(int fd, void* data, std::size_t n, off_t at) {
  const ssize_t most = room(fd, n);
  return most < 0 ? -1 : next<ssize_t(int, void*, std::size_t, off_t)>("pread")(fd, data, std::size_t(most), at);
}
ssize_t pread64(int fd, void* data, std::size_t n, off64_t at) {
  const ssize_t most = room(fd, n);
  return most < 0 ? -1 : next<ssize_t(int, void*, std::size_t, off64_t)>("pread64")(fd, data, std::size_t(most), at);
}
int fsync(int fd) {
  return fails(fd) ? -1 : changed(next<int(int)>("fsync")(fd), fd, "flush");
}
int fdatasync(int fd) {
  return fails(fd) ? -1 : changed(next<int(int)>("fdatasync")(fd), fd, "flush");
}
int rename(const char* from, const char* to) noexcept {
  if (fails(from)) return -1;
  const std::string before = entry(AT_FDCWD, from);
  return note(next<int(const char*, const char*)>("rename")(from, to),
              [&] { return "rename " + before + " " + entry(AT_FDCWD, to) + " " + number_of(AT_FDCWD, to); });
}
int renameat(int in, const char* from, int into, const char* to) noexcept {
  if (fails(from)) return -1;
  const std::string before = entry(in, from);
  return note(next<int(int, const char*, int, const char*)>("renameat")(in, from, into, to),
              [&] { return "rename " + before + " " + entry(into, to) + " " + number_of(into, to); });
}
int mkdir(const char* path, mode_t mode) noexcept {
  return fails(path) ? -1 : made(next<int(const char*, mode_t)>("mkdir")(path, mode), AT_FDCWD, path);
}
int mkdirat(int in, const char* path, mode_t mode) noexcept {
  return fails(path) ? -1 : made(next<int(int, const char*, mode_t)>("mkdirat")(in, path, mode), in, path);
}
int ftruncate(int fd, off_t n) noexcept {
  return fails(fd) ? -1 : changed(next<int(int, off_t)>("ftruncate")(fd, n), fd);
}
int ftruncate64(int fd, off64_t n) noexcept {
  return fails(fd) ? -1 : changed(next<int(int, off64_t)>("ftruncate64")(fd, n), fd);
}
int fallocate(int fd, int mode, off_t at, off_t n) {
  return fails(fd) ? -1 : changed(next<int(int, int, off_t, off_t)>("fallocate")(fd, mode, at, n), fd);
}
int fallocate64(int fd, int mode, off64_t at, off64_t n) {
  return fails(fd) ? -1 : changed(next<int(int, int, off64_t, off64_t)>("fallocate64")(fd, mode, at, n), fd);
}
int fchmod(int fd, mode_t mode) noexcept {
  return fails(fd) ? -1 : next<int(int, mode_t)>("fchmod")(fd, mode);
}
int fchmodat(int in, const char* path, mode_t mode, int flags) noexcept {
  return fails(path) ? -1 : next<int(int, const char*, mode_t, int)>("fchmodat")(in, path, mode, flags);
}
int symlinkat(const char* to, int in, const char* path) noexcept {
  return fails(path) ? -1 : made(next<int(const char*, int, const char*)>("symlinkat")(to, in, path), in, path);
}
int unlink(const char* path) noexcept {
  return fails(path) ? -1 : note(next<int(const char*)>("unlink")(path), [&] { return "remove " + entry(AT_FDCWD, path); });
}
int unlinkat(int in, const char* path, int flags) noexcept {
  if (fails(path)) return -1;
  return note(next<int(int, const char*, int)>("unlinkat")(in, path, flags), [&] { return "remove " + entry(in, path); });
}

}  // extern "C"

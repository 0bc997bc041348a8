// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A library for LD_PRELOAD: makes the n-th system call on files fail, or all from the n-th on.
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
/// True if the call fails; errno is set then. A call that is no write cannot be short.
bool fails() {
  if (!hits() || kind == faults::short_write) return false;
  errno = kind;
  return true;
}
/// True for files and directories: MPI's sockets and shared memory do not count.
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
/// The bytes that a write may write, or -1.
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

int open(const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  return fails(path) ? -1 : next<int(const char*, int, mode_t)>("open")(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  return fails(path) ? -1 : next<int(const char*, int, mode_t)>("open64")(path, flags, mode);
}
int openat(int at, const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  return fails(path) ? -1 : next<int(int, const char*, int, mode_t)>("openat")(at, path, flags, mode);
}
int openat64(int at, const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  return fails(path) ? -1 : next<int(int, const char*, int, mode_t)>("openat64")(at, path, flags, mode);
}
ssize_t write(int fd, const void* data, std::size_t n) {
  const ssize_t most = room(fd, n);
  return most < 0 ? -1 : next<ssize_t(int, const void*, std::size_t)>("write")(fd, data, std::size_t(most));
}
ssize_t pwrite(int fd, const void* data, std::size_t n, off_t at) {
  const ssize_t most = room(fd, n);
  return most < 0 ? -1 : next<ssize_t(int, const void*, std::size_t, off_t)>("pwrite")(fd, data, std::size_t(most), at);
}
ssize_t pwrite64(int fd, const void* data, std::size_t n, off64_t at) {
  const ssize_t most = room(fd, n);
  return most < 0 ? -1 : next<ssize_t(int, const void*, std::size_t, off64_t)>("pwrite64")(fd, data, std::size_t(most), at);
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
  return fails(fd) ? -1 : next<int(int)>("fsync")(fd);
}
int fdatasync(int fd) {
  return fails(fd) ? -1 : next<int(int)>("fdatasync")(fd);
}
int rename(const char* from, const char* to) noexcept {
  return fails(from) ? -1 : next<int(const char*, const char*)>("rename")(from, to);
}
int renameat(int in, const char* from, int into, const char* to) noexcept {
  return fails(from) ? -1 : next<int(int, const char*, int, const char*)>("renameat")(in, from, into, to);
}
int mkdir(const char* path, mode_t mode) noexcept {
  return fails(path) ? -1 : next<int(const char*, mode_t)>("mkdir")(path, mode);
}
int mkdirat(int in, const char* path, mode_t mode) noexcept {
  return fails(path) ? -1 : next<int(int, const char*, mode_t)>("mkdirat")(in, path, mode);
}
int ftruncate(int fd, off_t n) noexcept {
  return fails(fd) ? -1 : next<int(int, off_t)>("ftruncate")(fd, n);
}
int ftruncate64(int fd, off64_t n) noexcept {
  return fails(fd) ? -1 : next<int(int, off64_t)>("ftruncate64")(fd, n);
}
int fallocate(int fd, int mode, off_t at, off_t n) {
  return fails(fd) ? -1 : next<int(int, int, off_t, off_t)>("fallocate")(fd, mode, at, n);
}
int fallocate64(int fd, int mode, off64_t at, off64_t n) {
  return fails(fd) ? -1 : next<int(int, int, off64_t, off64_t)>("fallocate64")(fd, mode, at, n);
}
int fchmod(int fd, mode_t mode) noexcept {
  return fails(fd) ? -1 : next<int(int, mode_t)>("fchmod")(fd, mode);
}
int fchmodat(int in, const char* path, mode_t mode, int flags) noexcept {
  return fails(path) ? -1 : next<int(int, const char*, mode_t, int)>("fchmodat")(in, path, mode, flags);
}
int symlinkat(const char* to, int in, const char* path) noexcept {
  return fails(path) ? -1 : next<int(const char*, int, const char*)>("symlinkat")(to, in, path);
}
int unlink(const char* path) noexcept {
  return fails(path) ? -1 : next<int(const char*)>("unlink")(path);
}
int unlinkat(int in, const char* path, int flags) noexcept {
  return fails(path) ? -1 : next<int(int, const char*, int)>("unlinkat")(in, path, flags);
}

}  // extern "C"

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Files: reads at any position, and atomic replacement by a new file.

#include <gshard/exec/process/error.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace gshard { inline namespace v0 {

namespace detail {

/// Owns a file descriptor.
class descriptor {
 public:
  explicit descriptor(int fd) : fd_(fd) {}
  descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

// "model.safetensors: cannot be opened: No such file or directory"
[[noreturn]] inline void throw_errno(const std::string& path, const std::string& what, int code = errno) {
  throw error(path + ": " + what + ": " + std::generic_category().message(code));
}

/// Returns the path. Throws `gshard::error` if it has a NUL character, where it would end for the system.
inline const std::string& checked_path(const std::string& path) {
  if (path.find('\0') != path.npos) throw error(path + ": a path has no character NUL");
  return path;
}

/// Calls f until a signal does not interrupt it. f returns a negative number and sets errno if it fails.
template <class F>
auto uninterrupted(F f) {
  auto result = f();
  while (result < 0 && errno == EINTR) result = f();
  return result;
}

inline int open_file(const std::string& path, int flags, mode_t mode = 0) {
  return uninterrupted([&] { return ::open(checked_path(path).c_str(), flags | O_CLOEXEC, mode); });
}

/// Random digits, for names that no other file has.
inline std::string random_digits(std::size_t n) {
  std::string text;
  for (std::random_device random; text.size() < n;) text += "0123456789abcdef"[random() % 16];
  return text;
}
inline bool are_hex_digits(std::string_view text) { return text.find_first_not_of("0123456789abcdef") == text.npos; }

inline std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

// Linux transfers at most this much in one call; macOS refuses more.
inline constexpr std::size_t most_at_once = std::size_t(1) << 30;

inline void write_at(const descriptor& file, const std::string& path, std::int64_t at,
                     std::span<const std::byte> data) {
  while (!data.empty()) {
    const ssize_t n = ::pwrite(file.get(), data.data(), std::min(data.size(), most_at_once), at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw_errno(path, "writing at byte " + std::to_string(at) + " failed", n < 0 ? errno : EIO);
    data = data.subspan(std::size_t(n));
    at += n;
  }
}

inline void read_at(const descriptor& file, const std::string& path, std::int64_t at,
                    std::span<std::byte> to) {
  while (!to.empty()) {
    const ssize_t n = ::pread(file.get(), to.data(), std::min(to.size(), most_at_once), at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_errno(path, "reading at byte " + std::to_string(at) + " failed");
    if (n == 0)
      throw error(path + ": ends at byte " + std::to_string(at) +
                  ", although it was longer when it was opened");
    to = to.subspan(std::size_t(n));
    at += n;
  }
}

/// Returns when the data that this process wrote to the file is on the disk.
inline void flush(const descriptor& file, const std::string& path) {
  if (uninterrupted([&] { return ::fsync(file.get()); }) != 0) throw_errno(path, "writing to the disk failed");
}

/// Adds zeros, or removes the end. Space on the disk is reserved if the file system supports it.
inline void resize(const descriptor& file, const std::string& path, std::int64_t from, std::int64_t to) {
  int code = -1;
#ifdef __linux__
  if (to > from) {
    code = uninterrupted([&] { return ::fallocate(file.get(), 0, from, to - from); });
    if (code != 0 && errno != EOPNOTSUPP && errno != ENOSYS) throw_errno(path, "cannot have " + std::to_string(to) + " bytes");
  }
#endif
  while (code != 0) {
    code = ::ftruncate(file.get(), to);
    if (code != 0 && errno != EINTR) throw_errno(path, "cannot have " + std::to_string(to) + " bytes");
  }
}

inline std::string directory_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

/// Calls f(name) for all entries of a directory except "." and "..". False if it cannot be read.
template <class F>
bool for_each_name(DIR* open, F f) {
  if (open == nullptr) return false;
  const auto close = [](DIR* d) { ::closedir(d); };
  const std::unique_ptr<DIR, decltype(close)> all(open, close);
  errno = 0;
  while (const dirent* const entry = ::readdir(all.get()))
    if (const std::string_view name = entry->d_name; name != "." && name != "..") f(std::string(name));
  return errno == 0;
}

/// Removes the temporary files that atomic_files of a path have left, if they are this user's regular files.
inline void remove_leftovers(const std::string& path, std::string_view infix, std::size_t digits) {
  const std::string directory = directory_of(path), begin = path.substr(directory == "." ? 0 : directory.size()).append(infix);
  for_each_name(::opendir(directory.c_str()), [&](const std::string& name) {
    if (!name.starts_with(begin) || name.size() != begin.size() + digits) return;
    if (!are_hex_digits(std::string_view(name).substr(begin.size()))) return;
    const std::string whole = directory == "." ? name : directory + name;
    struct stat status;
    if (::lstat(whole.c_str(), &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid()) ::unlink(whole.c_str());
  });
}

}  // namespace detail

/// A regular file that can be read at any position. Failures throw `gshard::error` with the file's name and the system's message.
class input_file {
 public:
  explicit input_file(std::string path)
      : path_(std::move(path)),
        file_(detail::open_file(path_, O_RDONLY | O_NONBLOCK)) {  // a pipe would wait for its writer
    struct stat status;
    if (file_.get() < 0 || ::fstat(file_.get(), &status) != 0) detail::throw_errno(path_, "cannot be opened");
    if (!S_ISREG(status.st_mode)) throw error(path_ + ": is not a regular file");
    size_ = status.st_size;
  }

  const std::string& path() const { return path_; }
  std::int64_t size() const { return size_; }
  void read(std::int64_t at, std::span<std::byte> to) const { detail::read_at(file_, path_, at, to); }

 private:
  std::string path_;
  detail::descriptor file_;
  std::int64_t size_ = 0;
};

/// A new file that gets its name atomically, by commit(). Until then, or without commit(), an existing file of that name is unchanged.
/// After a crash, there is either the old file or the complete new one. Failures throw `gshard::error` with the file's name and the
/// system's message.
///
/// Data is written to `<path>.tmp-` and 16 hexadecimal digits. The destructor removes that file. If the process is killed, the next one to
/// write to this path removes it. A symbolic link at `path` is replaced, not followed. The permissions are `mode`, independently of the
/// umask and of an existing file. By default only the owner may read the file.
class atomic_file {
 public:
  explicit atomic_file(std::string path, mode_t mode = 0600)
      : path_(std::move(path)), temporary_(path_ + infix + detail::random_digits(digits)), file_(create(mode)) {}
  atomic_file(const atomic_file&) = delete;
  atomic_file& operator=(const atomic_file&) = delete;
  ~atomic_file() {
    if (!committed_ && is_ours()) ::unlink(temporary_.c_str());
  }

  const std::string& path() const { return path_; }
  /// The path of the data until commit().
  const std::string& temporary() const { return temporary_; }
  std::int64_t size() const { return size_; }

  void append(std::span<const std::byte> data) {
    detail::write_at(file_, path_, size_, data);
    size_ += std::int64_t(data.size());
  }
  /// Overwrites bytes that were appended at `at`.
  void patch(std::int64_t at, std::span<const std::byte> data) { detail::write_at(file_, path_, at, data); }
  /// Adds zeros up to this size and reserves their space on the disk, or removes the end.
  void resize(std::int64_t bytes) {
    detail::resize(file_, path_, size_, bytes);
    size_ = bytes;
  }

  /// Returns when the data is on the disk.
  void sync() { detail::flush(file_, path_); }
  /// Flushes the data to the disk, then renames the file.
  void commit() {
    sync();
    if (!is_ours())
      throw error(path_ + ": another process is writing it too, and has removed our " + temporary_);
    if (detail::uninterrupted([&] { return ::rename(temporary_.c_str(), path_.c_str()); }) != 0)
      detail::throw_errno(path_, "cannot be replaced");
    committed_ = true;
    // Not every file system can flush a directory. After a power cut, either the old file or the new one is there, complete.
    const detail::descriptor directory(
        detail::open_file(detail::directory_of(path_), O_RDONLY | O_DIRECTORY));
    if (directory.get() >= 0) detail::uninterrupted([&] { return ::fsync(directory.get()); });
  }

 private:
  static constexpr const char* infix = ".tmp-";
  static constexpr std::size_t digits = 16;

  detail::descriptor create(mode_t mode) const {
    struct stat status;
    if (::lstat(path_.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode))
      throw error(path_ + ": cannot be replaced: it is not a regular file");
    detail::remove_leftovers(path_, infix, digits);
    detail::descriptor file(detail::open_file(temporary_, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode));
    if (file.get() < 0) detail::throw_errno(path_, "no temporary file can be made in its directory");
    if (detail::uninterrupted([&] { return ::fchmod(file.get(), mode); }) != 0) {
      const int code = errno;
      ::unlink(temporary_.c_str());
      detail::throw_errno(path_, "its permissions cannot be set", code);
    }
    return file;
  }
  bool is_ours() const {
    struct stat named, open;
    return ::lstat(temporary_.c_str(), &named) == 0 && ::fstat(file_.get(), &open) == 0 &&
           named.st_ino == open.st_ino && named.st_dev == open.st_dev;
  }

  std::string path_, temporary_;
  detail::descriptor file_;
  std::int64_t size_ = 0;
  bool committed_ = false;
};

}}  // namespace gshard::v0

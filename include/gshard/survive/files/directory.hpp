// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A directory of a run: files and directories in it that only their owner may read, made without following
// symbolic links.

#include <gshard/exec/process/error.hpp>
#include <gshard/io/file.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// An open directory. A `name` is an entry in it. Failures throw `gshard::error` with the path and the system's message.
class directory {
 public:
  /// An existing directory. A symbolic link at `path` is followed, because users have such links to their
  /// disks.
  static directory at(const std::string& path) { return {path, descriptor(open_file(path, O_RDONLY | O_DIRECTORY))}; }
  /// An existing directory, or nothing if there is none.
  static std::optional<directory> find(const std::string& path) {
    descriptor fd(open_file(path, O_RDONLY | O_DIRECTORY));
    if (fd.get() < 0 && errno == ENOENT) return std::nullopt;
    return directory(path, std::move(fd));
  }
  /// A directory that is made if it is missing, with all its parents.
  static directory made(const std::string& path) {
    checked_path(path);
    for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
      const std::string part = path.substr(0, slash);
      if (make(AT_FDCWD, part, path)) at(directory_of(part)).sync();
      if (slash == path.npos) return at(path);
    }
  }

  const std::string& path() const { return path_; }
  std::string path_of(const std::string& name) const { return path_ + "/" + name; }

  /// A directory in this one.
  directory sub(const std::string& name) const { return {path_of(name), opened(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)}; }
  /// A directory in this one, or nothing if there is none, maybe because another process has just removed it.
  std::optional<directory> find_sub(const std::string& name) const {
    descriptor fd = opened(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (fd.get() < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)) return std::nullopt;
    return directory(path_of(name), std::move(fd));
  }
  /// A directory in this one, which is made if it is missing. A new entry is on the disk afterwards.
  directory made_sub(const std::string& name) const {
    if (make(fd_.get(), name, path_of(name))) sync();
    return sub(name);
  }
  /// A new file, which did not exist.
  descriptor create(const std::string& name) const {
    descriptor file = opened(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (file.get() < 0) throw_errno(path_of(name), "cannot be made");
    if (uninterrupted([&] { return ::fchmod(file.get(), 0600); }) != 0) {
      const int code = errno;
      remove(name);
      throw_errno(path_of(name), "its permissions cannot be set", code);
    }
    return file;
  }
  /// A regular file for reading, and its size.
  std::pair<descriptor, std::int64_t> read(const std::string& name) const {
    descriptor file = opened(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);  // a pipe would wait for its writer
    struct stat status;
    if (file.get() < 0 || ::fstat(file.get(), &status) != 0)
      throw_errno(path_of(name), errno == ELOOP ? "is a symbolic link" : "cannot be opened");
    if (!S_ISREG(status.st_mode)) throw error(path_of(name) + ": is not a regular file");
    return {std::move(file), status.st_size};
  }
  /// A regular file for reading and writing, which is made if it is missing. Throws for a file with several hard links.
  descriptor open(const std::string& name) const {
    descriptor file = opened(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600);
    struct stat status;
    if (file.get() < 0 || ::fstat(file.get(), &status) != 0)
      throw_errno(path_of(name), errno == ELOOP ? "is a symbolic link" : "cannot be opened");
    if (!S_ISREG(status.st_mode) || status.st_nlink > 1) throw error(path_of(name) + ": is not a regular file of one name");
    return file;
  }
  /// Identifies a file independently of its name.
  using identity = std::pair<dev_t, ino_t>;
  static std::optional<identity> identity_of(const descriptor& file) {
    struct stat status;
    return ::fstat(file.get(), &status) == 0 ? std::optional(identity(status.st_dev, status.st_ino)) : std::nullopt;
  }
  std::optional<identity> identity_of(const std::string& name) const {
    const auto status = status_of(name);
    return status ? std::optional(identity(status->st_dev, status->st_ino)) : std::nullopt;
  }
  /// The content of a file of at most `most` bytes.
  std::string text_of(const std::string& name, std::int64_t most) const {
    const auto [file, size] = read(name);
    if (size > most) throw error(path_of(name) + ": has " + std::to_string(size) + " bytes, more than " + std::to_string(most));
    std::string text(std::size_t(size), ' ');
    read_at(file, path_of(name), 0, std::as_writable_bytes(std::span(text)));
    return text;
  }
  bool has(const std::string& name) const { return mode_of(name).has_value(); }
  bool has_file(const std::string& name) const { return S_ISREG(mode_of(name).value_or(0)); }
  bool has_link(const std::string& name) const { return S_ISLNK(mode_of(name).value_or(0)); }
  bool has_directory(const std::string& name) const { return S_ISDIR(mode_of(name).value_or(0)); }
  bool has_other_than_directory(const std::string& name) const { return !S_ISDIR(mode_of(name).value_or(S_IFDIR)); }

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    const int again = uninterrupted([&] { return ::openat(fd_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
    DIR* const list = again < 0 ? nullptr : ::fdopendir(again);
    if (list == nullptr && again >= 0) ::close(again);
    if (!for_each_name(list, [&](std::string name) { all.push_back(std::move(name)); })) throw_errno(path_, "cannot be listed");
    std::ranges::sort(all);
    return all;
  }

  /// Returns when created, renamed and removed entries are on the disk. Some file systems cannot flush a directory.
  void sync() const {
    if (uninterrupted([&] { return ::fsync(fd_.get()); }) != 0 && errno != EINVAL && errno != ENOTSUP)
      throw_errno(path_, "writing to the disk failed");
  }
  /// Removes a file or a link. False if that fails.
  bool remove(const std::string& name) const {
    return uninterrupted([&] { return ::unlinkat(fd_.get(), name.c_str(), 0); }) == 0;
  }
  /// Removes an empty directory. False if it is not empty, or if that fails.
  bool remove_directory(const std::string& name) const {
    return uninterrupted([&] { return ::unlinkat(fd_.get(), name.c_str(), AT_REMOVEDIR); }) == 0;
  }

  /// Atomically replaces a file by one with this content. The content is on the disk afterwards.
  void replace(const std::string& name, std::string_view content) const {
    replace_by(name, [&](const std::string& temporary) {
      const descriptor file = create(temporary);
      write_at(file, path_of(name), 0, std::as_bytes(std::span(content)));
      flush(file, path_of(name));
    });
  }
  /// Atomically replaces a symbolic link.
  void link(const std::string& name, const std::string& target) const {
    replace_by(name, [&](const std::string& temporary) {
      if (uninterrupted([&] { return ::symlinkat(target.c_str(), fd_.get(), temporary.c_str()); }) != 0)
        throw_errno(path_of(name), "cannot be made");
    });
  }
  std::string target_of(const std::string& name) const {
    std::string target(4096, ' ');
    const ssize_t n = uninterrupted([&] { return ::readlinkat(fd_.get(), name.c_str(), target.data(), target.size()); });
    return n < 0 ? std::string() : target.substr(0, std::size_t(n));
  }

  /// The name of a temporary file of `name`, and a test for such names.
  static std::string temporary_of(const std::string& name) { return name + ".tmp-" + random_digits(16); }
  static bool is_temporary_of(const std::string& name, std::string_view found) {
    const std::string begin = name + ".tmp-";
    return found.starts_with(begin) && found.size() == begin.size() + 16 && are_hex_digits(found.substr(begin.size()));
  }

 private:
  directory(std::string path, descriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {
    if (fd_.get() < 0) throw_errno(path_, "cannot be opened as a directory");
  }

  // True if it was made; the caller flushes its parent. Permissions do not depend on the umask.
  static bool make(int in, const std::string& name, const std::string& path) {
    if (uninterrupted([&] { return ::mkdirat(in, name.c_str(), 0700); }) == 0) {
      if (uninterrupted([&] { return ::fchmodat(in, name.c_str(), 0700, 0); }) != 0) throw_errno(path, "its permissions cannot be set");
      return true;
    }
    const int code = errno;
    struct stat status;
    if (::fstatat(in, name.c_str(), &status, 0) != 0 || !S_ISDIR(status.st_mode)) throw_errno(path, "cannot be made as a directory", code);
    return false;
  }
  descriptor opened(const std::string& name, int flags, mode_t mode = 0) const {
    return descriptor(uninterrupted([&] { return ::openat(fd_.get(), name.c_str(), flags | O_CLOEXEC, mode); }));
  }
  std::optional<struct stat> status_of(const std::string& name) const {
    struct stat status;
    if (::fstatat(fd_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
    return status;
  }
  std::optional<mode_t> mode_of(const std::string& name) const {
    const auto status = status_of(name);
    return status ? std::optional(status->st_mode) : std::nullopt;
  }
  template <class Make>
  void replace_by(const std::string& name, Make make_temporary) const {
    const std::string temporary = temporary_of(name);
    const process_error problem = problem_of([&] {
      make_temporary(temporary);
      if (uninterrupted([&] { return ::renameat(fd_.get(), temporary.c_str(), fd_.get(), name.c_str()); }) != 0)
        throw_errno(path_of(name), "cannot be replaced");
    });
    if (!problem.empty()) {
      remove(temporary);
      problem.fail();
    }
    sync();
  }

  std::string path_;
  descriptor fd_;
};

}}}  // namespace gshard::v0::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../complaint.hpp"

#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

/// A temporary directory, deleted with the object.
class scratch {
 public:
  scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "gshard-io-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw std::filesystem::filesystem_error("mkdtemp", std::error_code());
    directory_ = name;
  }
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;
  ~scratch() { std::filesystem::remove_all(directory_); }

  std::string operator/(const std::string& name) const { return directory_ / name; }
  /// The number of files and other entries in it.
  std::size_t entries() const {
    return std::size_t(std::distance(std::filesystem::directory_iterator(directory_),
                                     std::filesystem::directory_iterator()));
  }

 private:
  std::filesystem::path directory_;
};

inline std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}
inline void set_content(const std::string& path, const std::string& content) {
  std::filesystem::remove(
      path);  // some file systems wait for the disk if a file is truncated and written again
  std::ofstream(path, std::ios::binary) << content;
}

/// While it exists, files cannot grow beyond this many bytes, as if the disk were full.
class small_disk {
 public:
  explicit small_disk(std::size_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  small_disk(const small_disk&) = delete;
  small_disk& operator=(const small_disk&) = delete;
  ~small_disk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A file whose bytes are memory. The system reads the pages that a process uses.

#include <gshard/io/file.hpp>

#include <sys/mman.h>
#include <sys/stat.h>

#include <cstddef>
#include <span>
#include <string>

namespace gshard { inline namespace v0 { namespace onnx {

/// A regular file, mapped for reading. It must not become shorter while it is mapped: the system ends the process.
/// Throws `gshard::error` with the file's name if it cannot be opened or mapped.
class mapped_file {
 public:
  explicit mapped_file(const std::string& path) {
    const detail::descriptor file(detail::open_file(path, O_RDONLY | O_NONBLOCK));  // a pipe would wait for its writer
    struct stat status;
    if (file.get() < 0 || ::fstat(file.get(), &status) != 0) detail::throw_errno(path, "cannot be opened");
    if (!S_ISREG(status.st_mode)) throw error(path + ": is not a regular file");
    size_ = std::size_t(status.st_size);
    if (size_ == 0) return;  // no file of size 0 can be mapped
    at_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (at_ == MAP_FAILED) detail::throw_errno(path, "cannot be mapped");
  }
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;
  ~mapped_file() {
    if (size_ != 0) ::munmap(at_, size_);
  }

  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(at_), size_}; }

 private:
  void* at_ = nullptr;
  std::size_t size_ = 0;
};

}}}  // namespace gshard::v0::onnx

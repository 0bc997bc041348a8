// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A buffer of bytes: the memory of shards and arenas.

#include <gshard/exec/process/error.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>

namespace gshard { inline namespace v0 {

/// Bytes aligned to a cache line (also the size of the widest vector), or memory of the caller. Throws `gshard::error` if no memory is
/// left.
class buffer {
 public:
  static constexpr std::size_t alignment = 64;

  buffer() = default;
  explicit buffer(std::int64_t bytes) : room_(take(bytes)), data_(aligned(room_.get())), bytes_(bytes) {
    if (!room_) throw error("there is no memory for " + std::to_string(bytes) + " bytes");
  }
  /// Memory that was allocated elsewhere, with this alignment.
  buffer(std::shared_ptr<std::byte> given, std::int64_t bytes) : room_(given.get(), release{given}), data_(given.get()), bytes_(bytes) {}
  /// Memory that the caller keeps, with any alignment.
  buffer(std::byte* lent, std::int64_t bytes) : data_(lent), bytes_(bytes) {}

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::int64_t size() const { return bytes_; }

 private:
  struct release {
    std::shared_ptr<std::byte> given;
    void operator()(std::byte* p) const {
      if (!given) ::operator delete(p);
    }
  };
  std::unique_ptr<std::byte, release> room_;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;

  // Aligned here, because the aligned operator new of the GNU C library takes ten times as long for small buffers.
  static std::byte* take(std::int64_t bytes) {
    return static_cast<std::byte*>(::operator new(std::size_t(bytes > 0 ? bytes : 1) + alignment, std::nothrow));
  }
  static std::byte* aligned(std::byte* p) {
    return p + (alignment - reinterpret_cast<std::uintptr_t>(p) % alignment) % alignment;
  }
};

}}  // namespace gshard::v0

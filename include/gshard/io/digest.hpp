// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A digest of a file (XXH3-128), which detects damage.

#include <gshard/exec/process/hex.hpp>

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gshard { inline namespace v0 {

/// XXH3-128 of a stream of bytes: detects damage, at the speed of memory. It does not protect against somebody who changes a file together
/// with its digest.
class digest {
 public:
  static constexpr std::size_t hex_digits = 32;

  digest() { XXH3_128bits_reset(&state_); }

  void add(std::span<const std::byte> data) { XXH3_128bits_update(&state_, data.data(), data.size()); }
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }

  /// The digest of the bytes added so far: 32 lower-case digits, as `xxhsum -H2` prints them.
  std::string hex() const {
    XXH128_canonical_t bytes;  // the most significant first
    XXH128_canonicalFromHash(&bytes, XXH3_128bits_digest(&state_));
    return detail::hex_of(bytes.digest);
  }

 private:
  XXH3_state_t state_;
};

}}  // namespace gshard::v0

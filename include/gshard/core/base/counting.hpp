// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Counts of elements, bytes and devices that do not wrap.

#include <gshard/core/base/compiler.hpp>

#include <cstdint>

namespace gshard { inline namespace v0 {

/// The most bytes of a tensor (8 PiB), and the most indices of a dim. Each size is exact as a double, and sums over many tensors do not
/// overflow.
inline constexpr std::int64_t max_tensor_bytes = std::int64_t(1) << 53;
/// The size or price of a dim without an extent, or of a tensor of more than `max_tensor_bytes`.
inline constexpr std::int64_t uncountable = INT64_MAX;

namespace detail {
/// a * b, or `uncountable` on overflow.
constexpr std::int64_t saturating_product(std::int64_t a, std::int64_t b) {
  std::int64_t n = 0;
  return __builtin_mul_overflow(a, b, &n) ? uncountable : n;
}
/// a + b for a, b >= 0, or `uncountable` on overflow.
constexpr std::int64_t saturating_sum(std::int64_t a, std::int64_t b) {
  std::int64_t n = 0;
  return __builtin_add_overflow(a, b, &n) ? uncountable : n;
}
}  // namespace detail

/// The bytes of a tensor, computed extent by extent. `uncountable` if an extent is negative, or if there are more than `max_tensor_bytes`.
/// An extent of 0 makes the tensor empty. The other extents still count, because sizes of shards multiply them.
class byte_count {
 public:
  constexpr explicit byte_count(std::int64_t width) : bytes_(width) {}

  constexpr void times(std::int64_t extent) {
    empty_ = empty_ || extent == 0;
    counts_ = counts_ && extent >= 0 && extent <= max_tensor_bytes;
    if (extent > 1) bytes_ = detail::saturating_product(bytes_, extent);
  }
  constexpr bool is_countable() const { return counts_ && bytes_ <= max_tensor_bytes; }
  constexpr std::int64_t bytes() const { return !is_countable() ? uncountable : empty_ ? 0 : bytes_; }

 private:
  std::int64_t bytes_;
  bool empty_ = false, counts_ = true;
};

}}  // namespace gshard::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Half-open intervals of indices.

#include <gshard/core/base/compiler.hpp>

#include <cstdint>

namespace gshard { inline namespace v0 {

/// Indices [begin, end).
struct interval {
  std::int64_t begin = 0, end = 0;

  constexpr std::int64_t size() const { return end - begin; }
  constexpr interval shifted(std::int64_t by) const { return {begin + by, end + by}; }
  /// The intersection. If it is empty, begin == end.
  constexpr interval common(const interval& other) const {
    const std::int64_t b = begin > other.begin ? begin : other.begin, e = end < other.end ? end : other.end;
    return {b, e > b ? e : b};
  }
  constexpr bool operator==(const interval&) const = default;
};

}}  // namespace gshard::v0

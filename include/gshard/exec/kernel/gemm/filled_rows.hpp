// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Finds the zero rows of a matrix (empty expert slots), so that products can skip them.

#include <gshard/exec/kernel/vector.hpp>

#include <algorithm>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace kernel { namespace detail {

template <class T>
bool is_zero_row(const T* row, std::int64_t cols) {
  constexpr std::int64_t block = 256;
  for (std::int64_t j = 0; j < cols; j += block) {
    if (row[j] != T(0)) return false;
    const T others = sum_of<T>(std::min(block, cols - j), [from = row + j](auto at) {
      auto x = at(from);
      x = x != T(0) ? x * T(0) + T(1) : x;  // 1 or NaN for every element that is not zero
      return x;
    });
    if (others != T(0)) return false;
  }
  return true;
}

/// True if the last row of a matrix is zero. Expert buffers have a row for every capacity slot, and zeros in empty slots, which are the
/// last ones of each group. For most other matrices, one element gives the answer.
template <class T>
bool ends_in_zeros(const T* x, std::int64_t rows, std::int64_t cols, std::int64_t ld) {
  return rows > 0 && is_zero_row(x + (rows - 1) * ld, cols);
}

/// True if the product of every element with 0 is 0. No element may be NaN, infinite, or so large that bf16 would round it to infinity.
template <class T>
bool are_small(const T* x, std::int64_t rows, std::int64_t cols, std::int64_t ld) {
  for (std::int64_t i = 0; i < rows; ++i)
    if (!(sum_of<T>(cols, [=](auto at) { return at(x + i * ld) * T(2) * T(0); }) == T(0))) return false;
  return true;
}

/// Calls f(begin, end) for runs of rows that include all nonzero rows. Runs begin and end at multiples of `grain`, or at the end, so that
/// their products have few shapes.
template <class T, class F>
void for_each_filled(const T* x, std::int64_t rows, std::int64_t cols, std::int64_t ld, std::int64_t grain, F f) {
  const auto is_empty = [=](std::int64_t first) {  // starts at the end, where slots are empty
    for (std::int64_t i = std::min(first + grain, rows); i-- > first;)
      if (!is_zero_row(x + i * ld, cols)) return false;
    return true;
  };
  std::int64_t begin = 0;
  for (std::int64_t at = 0; at < rows; at += grain) {
    if (!is_empty(at)) continue;
    if (begin < at) f(begin, at);
    begin = at + grain;
  }
  if (begin < rows) f(begin, rows);
}

}}}}  // namespace gshard::v0::kernel::detail

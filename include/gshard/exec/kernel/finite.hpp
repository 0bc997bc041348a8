// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Finds NaN and infinities in arrays, and sums squares, nearly as fast as reading them.

#include <gshard/core/ir/arithmetic.hpp>
#include <gshard/exec/kernel/vector.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace gshard { inline namespace v0 { namespace kernel {

/// True if a number is neither NaN nor infinite. For a complex number, this holds for both parts.
template <class T>
bool is_finite(const T& x) {
  if constexpr (std::is_integral_v<T>) return true;
  else if constexpr (std::is_floating_point_v<T>) return std::isfinite(x);
  else if constexpr (gshard::detail::has_parts<T>) return std::isfinite(x.real()) && std::isfinite(x.imag());
  else return std::isfinite(float(x));
}

/// True if all elements are finite.
template <class T>
bool all_finite(const T* x, std::int64_t n) {
  if constexpr (std::is_floating_point_v<T>) {
    // x - x is 0 for finite numbers, otherwise NaN.
    return detail::sum_of<T>(n, [x](auto at) {
             const auto v = at(x);
             return v - v;
           }) == T(0);
  } else {
    return std::all_of(x, x + n, is_finite<T>);
  }
}

/// The sum of the squares of all elements.
template <class T>
T sum_of_squares(const T* x, std::int64_t n) {
  return detail::sum_of<T>(n, [x](auto at) {
    const auto v = at(x);
    return v * v;
  });
}

/// Prefetches the first KiB of the next operand, while something else is computed.
template <class T>
void prefetch(const T* next) {
  constexpr std::uintptr_t line = 64;
  const auto first = reinterpret_cast<std::uintptr_t>(next);  // null for no elements
  for (std::uintptr_t i = 0; i < 1024; i += line) __builtin_prefetch(reinterpret_cast<const void*>(first + i));
}

/// The index of the first element that is not finite, or -1.
template <class T>
std::int64_t first_not_finite(const T* x, std::int64_t n) {
  constexpr std::int64_t block = 2048;
  for (std::int64_t i = 0; i < n; i += block) {
    const std::int64_t m = std::min(block, n - i);
    if (!all_finite(x + i, m)) return std::find_if_not(x + i, x + i + m, is_finite<T>) - x;
  }
  return -1;
}

}}}  // namespace gshard::v0::kernel

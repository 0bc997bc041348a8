// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The square root without errno, so that loops that call it vectorize.

#include <gshard/core/base/compiler.hpp>

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace gshard { inline namespace v0 { namespace kernel {

namespace detail {

// V is T or a vector of T; Bits is the same with unsigned integers.
template <class T, class V, class Bits>
constexpr V square_root_as(V x) {
  using bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr bits magic = sizeof(T) == 4 ? bits(0x5F1FFFF9) : bits(0x5FE3FFFF20000000);
  V y = std::bit_cast<V>(magic - (std::bit_cast<Bits>(x) >> 1));  // 1 / sqrt(x) to 3 %, then Newton steps
  y *= T(1.68191391) - T(0.703952009) * x * y * y;                  // the constants of the first step minimize the largest error
  y *= T(1.5) - T(0.5) * x * y * y;
  if constexpr (sizeof(T) == 8) y *= T(1.5) - T(0.5) * x * y * y;
  const V root = x * y;
  return x <= std::numeric_limits<T>::max() ? root + T(0.5) * y * (x - root * root) : x;
}

}  // namespace detail

/// sqrt(x) within one unit in the last place, for x = 0 and normal x > 0. Loops that call it vectorize. std::sqrt prevents that by setting
/// errno.
template <std::floating_point T>
constexpr T square_root(T x) {
  return detail::square_root_as<T, T, std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>(x);
}

}}}  // namespace gshard::v0::kernel

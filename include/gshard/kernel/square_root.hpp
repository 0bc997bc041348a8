// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace gshard { inline namespace v0 { namespace kernel {

/// sqrt(x) within one unit in the last place for x = 0 and normal x > 0. Loops of it vectorise, which
/// std::sqrt forbids by setting errno.
template <std::floating_point T>
constexpr T square_root(T x) {
  using bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr bits magic = sizeof(T) == 4 ? bits(0x5F375A86) : bits(0x5FE6EB50C7B537A9);
  T y = std::bit_cast<T>(magic - (std::bit_cast<bits>(x) >> 1));  // 1 / sqrt(x) to 3 %, then by Newton
  y *= T(1.5) - T(0.5) * x * y * y;
  y *= T(1.5) - T(0.5) * x * y * y;
  y *= T(1.5) - T(0.5) * x * y * y;
  if constexpr (sizeof(T) == 8) y *= T(1.5) - T(0.5) * x * y * y;
  const T root = x * y;
  return x <= std::numeric_limits<T>::max() ? root + T(0.5) * y * (x - root * root) : x;
}

}}}  // namespace gshard::v0::kernel

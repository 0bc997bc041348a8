// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The number format bf16, and conversions from and to float.

#include <gshard/core/base/compiler.hpp>

#include <bit>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// The upper half of a float, rounded to nearest, ties to even: 8 bits of exponent, 8 of precision. NaNs stay NaNs. An enum, because
/// compilers do not vectorize copies of structs.
enum class bf16 : std::uint16_t {};

constexpr bf16 to_bf16(float x) {
  const auto word = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = word + 0x7fffu + ((word >> 16) & 1u);
  const bool is_nan = (word & 0x7fffffffu) > 0x7f800000u;
  return bf16((is_nan ? word | 0x400000u : rounded) >> 16);
}
constexpr float to_float(bf16 x) { return std::bit_cast<float>(std::uint32_t(x) << 16); }

}}}  // namespace gshard::v0::detail

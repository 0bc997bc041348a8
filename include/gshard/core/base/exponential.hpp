// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The exponential function without branches, so that loops that call it vectorize.

#include <gshard/core/base/compiler.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

template <class T>
struct exponential_of;

template <>
struct exponential_of<float> {
  using integer = std::int32_t;
  static constexpr int mantissa = 23, bias = 127;
  static constexpr float lowest = -87.3F, highest = 88.8F, shifter = 0x1.8p23F;
  static constexpr float log2_e = 0x1.715476p+0F, ln2 = 0x1.62e43p-1F, ln2_high = 0x1.62e4p-1F, ln2_low = 0x1.7f7d1cp-20F;
  // Taylor coefficients. Chebyshev's polynomial spreads the term of degree 7 over degrees 5 and 3. The error is at most 2e-9.
  static constexpr float series[] = {0x1.6c16c2p-10F, 0x1.126eecp-7F, 0x1.555556p-5F, 0x1.555406p-3F, 0.5F, 1.0F, 1.0F};
};
template <>
struct exponential_of<double> {
  using integer = std::int64_t;
  static constexpr int mantissa = 52, bias = 1023;
  static constexpr double lowest = -708.3, highest = 709.8, shifter = 0x1.8p52;
  static constexpr double log2_e = 0x1.71547652b82fep+0, ln2 = 0x1.62e42fefa39efp-1, ln2_high = 0x1.62e42fefa3800p-1,
                          ln2_low = 0x1.ef35793c76730p-45;
  static constexpr double series[] = {0x1.6124613a86d09p-33,
                                      0x1.1eed8eff8d898p-29,
                                      0x1.ae64567f544e4p-26,
                                      0x1.27e4fb7789f5cp-22,
                                      0x1.71de3a556c734p-19,
                                      0x1.a01a01a01a01ap-16,
                                      0x1.a01a01a01a01ap-13,
                                      0x1.6c16c16c16c17p-10,
                                      0x1.1111111111111p-7,
                                      0x1.5555555555555p-5,
                                      0x1.5555555555555p-3,
                                      0.5,
                                      1.0,
                                      1.0};
};

// e^r for small r. V is T or a vector of T.
template <class T, class V>
constexpr V series_of_exponential(V r) {
  using c = exponential_of<T>;
  V p = V{} + c::series[0];
  for (std::size_t i = 1; i < sizeof(c::series) / sizeof(T); ++i) p = p * r + c::series[i];
  return p;
}

// e^x = 2^n e^r. Bits: V with integers of T's size.
template <class T, class V, class Bits>
constexpr V exponential_as(V x) {
  using c = exponential_of<T>;
  const V bounded = x < c::lowest ? V{} + c::lowest : x > c::highest ? V{} + c::highest : x;
  const V shifted = bounded * c::log2_e + c::shifter;  // leaves n in the low bits
  const V n = shifted - c::shifter;
  const V p = series_of_exponential<T>((bounded - n * c::ln2_high) - n * c::ln2_low);
  // 2^n in two factors, because n may be one more than an exponent can hold
  const Bits whole = std::bit_cast<Bits>(shifted) - std::bit_cast<typename c::integer>(c::shifter);
  const Bits half = whole >> 1;
  const V y = p * std::bit_cast<V>((half + c::bias) << c::mantissa) *
              std::bit_cast<V>((whole - half + c::bias) << c::mantissa);
  return x < c::lowest ? V{} : y;
}

// The same in fewer operations, for x <= 0. The additional error is that of rounding x once.
template <class T, class V, class Bits>
constexpr V falling_exponential_as(V x) {
  using c = exponential_of<T>;
  const V shifted = x * c::log2_e + c::shifter;
  const V p = series_of_exponential<T>(x - (shifted - c::shifter) * c::ln2);
  const V y = p * std::bit_cast<V>((std::bit_cast<Bits>(shifted) + c::bias) << c::mantissa);
  return x < c::lowest ? V{} : y;
}

/// e^x within one unit in the last place, without branches, so that loops that call it vectorize. Below the smallest normal number, the
/// result is 0. NaN stays NaN.
constexpr float exponential(float x) {
  return exponential_as<float, float, std::int32_t>(x);
}
constexpr double exponential(double x) {
  return exponential_as<double, double, std::int64_t>(x);
}

}}}  // namespace gshard::v0::detail

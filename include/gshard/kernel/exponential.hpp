// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <bit>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace kernel {

/// e^x within one unit in the last place, without branches, so that loops of it vectorise. Below the smallest
/// normal number the result is 0; NaN stays NaN.
constexpr float exponential(float x) {
  constexpr float shifter = 0x1.8p23F;
  const float bounded = x < -87.3F ? -87.3F : x > 88.8F ? 88.8F : x;
  const float shifted = bounded * 0x1.715476p+0F + shifter;  // log2(e); the integer is in the low bits
  const float n = shifted - shifter;
  const float r = (bounded - n * 0x1.62e4p-1F) - n * 0x1.7f7d1cp-20F;  // ln 2 in two parts
  float p = 0x1.a01a02p-13F;
  p = p * r + 0x1.6c16c2p-10F;
  p = p * r + 0x1.111112p-7F;
  p = p * r + 0x1.555556p-5F;
  p = p * r + 0x1.555556p-3F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  // 2^n in two halves, because 2^128 is not a float
  const auto bits = std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(shifter);
  const auto half = bits >> 1;
  const float scale0 = std::bit_cast<float>((half + 127) << 23);
  const float scale1 = std::bit_cast<float>((bits - half + 127) << 23);
  const float y = p * scale0 * scale1;
  return x < -87.3F ? 0.0F : y;
}
constexpr double exponential(double x) {
  constexpr double shifter = 0x1.8p52;
  const double bounded = x < -708.3 ? -708.3 : x > 709.8 ? 709.8 : x;
  const double shifted = bounded * 0x1.71547652b82fep+0 + shifter;
  const double n = shifted - shifter;
  const double r = (bounded - n * 0x1.62e42fefa3800p-1) - n * 0x1.ef35793c76730p-45;
  double p = 0x1.6124613a86d09p-33;  // 1/13!
  p = p * r + 0x1.1eed8eff8d898p-29;
  p = p * r + 0x1.ae64567f544e4p-26;
  p = p * r + 0x1.27e4fb7789f5cp-22;
  p = p * r + 0x1.71de3a556c734p-19;
  p = p * r + 0x1.a01a01a01a01ap-16;
  p = p * r + 0x1.a01a01a01a01ap-13;
  p = p * r + 0x1.6c16c16c16c17p-10;
  p = p * r + 0x1.1111111111111p-7;
  p = p * r + 0x1.5555555555555p-5;
  p = p * r + 0x1.5555555555555p-3;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  const auto bits = std::bit_cast<std::int64_t>(shifted) - std::bit_cast<std::int64_t>(shifter);
  const auto half = bits >> 1;
  const double scale0 = std::bit_cast<double>((half + 1023) << 52);
  const double scale1 = std::bit_cast<double>((bits - half + 1023) << 52);
  const double y = p * scale0 * scale1;
  return x < -708.3 ? 0.0 : y;
}

}}}  // namespace gshard::v0::kernel

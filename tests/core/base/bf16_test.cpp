// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/base/bf16.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

using gshard::detail::bf16, gshard::detail::to_bf16, gshard::detail::to_float;

TEST_CASE("bf16: what it can hold comes back as it was") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float x = to_float(bf16(bits));
    if (std::isnan(x)) CHECK(std::isnan(to_float(to_bf16(x))));
    else CHECK(to_bf16(x) == bf16(bits));
  }
}

TEST_CASE("bf16: the nearest, of two the even one") {
  CHECK(to_float(to_bf16(1 + 1.0f / 256)) == 1);
  CHECK(to_float(to_bf16(1 + 3.0f / 256)) == 1 + 4.0f / 256);
  CHECK(to_float(to_bf16(std::numeric_limits<float>::max())) == std::numeric_limits<float>::infinity());
  std::mt19937 gen(1);
  for (int i = 0; i < 100000; ++i) {
    const float x = std::bit_cast<float>(std::uint32_t(gen()));
    if (!std::isfinite(x)) continue;
    const bf16 near = to_bf16(x);
    const double found = to_float(near);
    if (std::isinf(found)) continue;
    for (const int step : {-1, 1})
      if (const double other = to_float(bf16(int(near) + step)); !std::isnan(other))
        CHECK(std::abs(found - double(x)) <= std::abs(other - double(x)));
  }
}

TEST_CASE("bf16: no number is a NaN's rounding") {
  CHECK(std::isnan(to_float(to_bf16(std::numeric_limits<float>::quiet_NaN()))));
  CHECK(std::isnan(to_float(to_bf16(std::bit_cast<float>(0x7f800001u)))));
}

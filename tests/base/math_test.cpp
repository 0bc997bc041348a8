// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/base/math.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <type_traits>

namespace gs = gshard;

namespace {

static_assert(gs::abs(-2.0F) == 2 && gs::abs(2.0) == 2);
static_assert(gs::max(1.0F, 2.0F) == 2 && gs::max(2.0, 1.0) == 2 && gs::min(1.0F, 2.0F) == 1 &&
              gs::min(2.0, 1.0) == 1);
static_assert(gs::select(true, 1, 2) == 1 && gs::select(false, 1.0F, 2.0F) == 2);
static_assert(std::is_same_v<decltype(gs::exp(1.0F)), float> &&
              std::is_same_v<decltype(gs::exp(1.0)), double>);

TEST_CASE_TEMPLATE("math: the functions are those of the standard library", T, float, double) {
  for (int i = -40; i <= 40; ++i) {
    const T x = T(i) / T(8), positive = gs::abs(x) + T(1) / T(16);
    CHECK(gs::exp(x) == std::exp(x));
    CHECK(gs::tanh(x) == std::tanh(x));
    CHECK(gs::log(positive) == std::log(positive));
    CHECK(gs::sqrt(positive) == std::sqrt(positive));
    CHECK(gs::abs(x) == std::abs(x));
  }
}

}  // namespace

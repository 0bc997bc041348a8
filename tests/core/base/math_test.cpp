// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/base/math.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace gs = gshard;

namespace {

static_assert(gs::abs(-2.0F) == 2 && gs::abs(2.0) == 2);
static_assert(gs::max(1.0F, 2.0F) == 2 && gs::max(2.0, 1.0) == 2 && gs::min(1.0F, 2.0F) == 1 &&
              gs::min(2.0, 1.0) == 1);
static_assert(gs::select(true, 1, 2) == 1 && gs::select(false, 1.0F, 2.0F) == 2);
static_assert(std::is_same_v<decltype(gs::exp(1.0F)), float> &&
              std::is_same_v<decltype(gs::exp(1.0)), double>);

constexpr float not_a_number = __builtin_nanf(""), infinity = __builtin_inff();
constexpr bool is_nan(float x) { return x != x; }

static_assert(is_nan(gs::max(not_a_number, 1.0F)) && is_nan(gs::max(1.0F, not_a_number)) && is_nan(gs::max(not_a_number, infinity)) &&
              is_nan(gs::max(-infinity, not_a_number)) && is_nan(gs::max(not_a_number, not_a_number)));
static_assert(is_nan(gs::min(not_a_number, 1.0F)) && is_nan(gs::min(1.0F, not_a_number)) && is_nan(gs::min(not_a_number, infinity)) &&
              is_nan(gs::min(-infinity, not_a_number)));
static_assert(gs::max(infinity, -infinity) == infinity && gs::min(infinity, -infinity) == -infinity);
static_assert(is_nan(gs::abs(not_a_number)) && gs::abs(-infinity) == infinity && std::bit_cast<std::uint32_t>(gs::abs(-0.0F)) == 0);
static_assert(is_nan(gs::relu(not_a_number)) && gs::relu(infinity) == infinity && gs::relu(-infinity) == 0 && gs::relu(-2.0) == 0 &&
              gs::relu(2.0) == 2);
static_assert(gs::select(true, 1.0F, not_a_number) == 1 && gs::select(false, not_a_number, 1.0F) == 1);

TEST_CASE_TEMPLATE("math: the functions are those of the standard library", T, float, double) {
  for (int i = -40; i <= 40; ++i) {
    const T x = T(i) / T(8), positive = gs::abs(x) + T(1) / T(16);
    CHECK(gs::exp(x) == std::exp(x));
    CHECK(gs::tanh(x) == std::tanh(x));
    CHECK(gs::log(positive) == std::log(positive));
    CHECK(gs::sqrt(positive) == std::sqrt(positive));
    CHECK(gs::abs(x) == std::abs(x));
    CHECK(gs::sin(x) == std::sin(x));
    CHECK(gs::cos(x) == std::cos(x));
    CHECK(gs::erf(x) == std::erf(x));
    CHECK(gs::pow(positive, x) == std::pow(positive, x));
  }
}

}  // namespace

TEST_CASE("numbers that are not finite are told") {
  constexpr double most = std::numeric_limits<double>::max(), unbounded = std::numeric_limits<double>::infinity();
  static_assert(gs::detail::is_finite(0) && gs::detail::is_finite(most) && gs::detail::is_finite(-most));
  static_assert(!gs::detail::is_finite(unbounded) && !gs::detail::is_finite(-unbounded));
  CHECK(!gs::detail::is_finite(std::numeric_limits<double>::quiet_NaN()));
}

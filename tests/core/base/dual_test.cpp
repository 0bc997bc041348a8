// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/base/dual.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <initializer_list>

namespace gs = gshard;
using real = gs::dual<double>;

namespace {

constexpr real x(double value) {
  return {value, 1};
}

// Exact if the arithmetic is exact.
static_assert((x(3) * x(3)).slope == 6 && (x(3) + 2).slope == 1 && (2 - x(3)).slope == -1 &&
              (-x(3)).slope == -1);
static_assert((1 / x(2)).slope == -0.25 && (x(6) / 2).slope == 0.5 && (x(2) / x(2)).slope == 0);
static_assert(real(3).slope == 0 && real(3.0F).value == 3 && real{}.value == 0);

// A branch is selected by the value. The slope is the slope of that branch.
static_assert(gs::max(x(1), real(2)).slope == 0 && gs::max(x(3), real(2)).slope == 1 &&
              gs::min(x(1), real(2)).slope == 1);
static_assert(gs::abs(x(-2)).slope == -1 && gs::abs(x(-2)).value == 2 && gs::abs(x(2)).slope == 1);
static_assert(gs::select(0 < x(1), x(1), real(0)).slope == 1 &&
              gs::select(0 < x(-1), x(-1), real(0)).slope == 0);
static_assert(x(1) < x(2) && x(2) > x(1) && x(1) <= x(1) && x(1) >= x(1) && x(1) == real(1));

// If several operands are the largest, they share the slope. abs and relu have slope 0 at 0.
static_assert(gs::max(x(1), real(1)).slope == 0.5 && gs::min(x(1), real(1)).slope == 0.5 && gs::max(x(1), x(1)).slope == 1);
static_assert(gs::abs(x(0)).slope == 0 && gs::relu(x(0)).slope == 0 && gs::relu(x(2)).slope == 1 && gs::relu(x(-2)).slope == 0);

// At NaN the slope is NaN.
constexpr double nan = __builtin_nan(""), infinity = __builtin_inf();
constexpr bool is_nan(real y) { return y.value != y.value && y.slope != y.slope; }
static_assert(is_nan(gs::max(x(nan), real(1))) && is_nan(gs::max(x(1), real(nan))) && is_nan(gs::max(real(nan), x(1))));
static_assert(is_nan(gs::min(x(nan), real(1))) && is_nan(gs::min(x(1), real(nan))) && is_nan(gs::min(real(nan), x(1))));
static_assert(is_nan(gs::abs(x(nan))) && is_nan(gs::relu(x(nan))));
static_assert(gs::select(true, x(2), real(nan)).slope == 1 && gs::select(false, real(nan), x(2)).slope == 1);

// At infinity the slope is the slope of the branch.
static_assert(gs::max(x(infinity), real(1)).slope == 1 && gs::max(x(-infinity), real(1)).slope == 0 && gs::relu(x(infinity)).slope == 1 &&
              gs::relu(x(-infinity)).slope == 0 && gs::abs(x(-infinity)).slope == -1);

// A quotient has no intermediate overflow.
static_assert((x(1e-200) / real(1e-200)).slope == 1 / 1e-200 && (x(1) / real(1e200)).slope == 1e-200 && (real(1) / x(1e200)).slope == 0);

/// The slope of f at a equals its central difference.
template <class F>
void check_slope(F f, double a) {
  const double h = 1e-5;
  const double difference = (f(a + h) - f(a - h)) / (2 * h);
  const real y = f(x(a));
  CHECK(y.value == doctest::Approx(f(a)).epsilon(1e-12));
  CHECK(y.slope == doctest::Approx(difference).epsilon(1e-6));
}

TEST_CASE("dual: slopes are central differences") {
  for (double a : {0.25, 0.5, 1.0, 1.75, 3.0}) {
    CAPTURE(a);
    check_slope([](auto v) { return gs::exp(v); }, a);
    check_slope([](auto v) { return gs::sin(v) * gs::cos(2 * v); }, a);
    check_slope([](auto v) { return gs::erf(v); }, a);
    check_slope([](auto v) { return gs::pow(v, 3) + gs::pow(v, -0.5) + gs::pow(2.5, v) + gs::pow(v, v); }, a);
    check_slope([](auto v) { return gs::log(v); }, a);
    check_slope([](auto v) { return gs::tanh(v); }, a);
    check_slope([](auto v) { return gs::sqrt(v); }, a);
    check_slope([](auto v) { return v * v * v - 2 * v + 1; }, a);
    check_slope([](auto v) { return v / (1 + gs::exp(-v)); }, a);
    check_slope([](auto v) { return gs::exp(-v * v) * gs::tanh(v) / gs::sqrt(1 + v); }, a);
    check_slope([](auto v) { return gs::abs(v - 2) * gs::max(v, decltype(v)(0.75)); }, a);
  }
}

TEST_CASE("dual: the root of a constant 0 has the slope 0") {
  CHECK((x(3) * gs::sqrt(real(0))).slope == 0);
  CHECK(gs::sqrt(x(0)).slope == infinity);
}

TEST_CASE("dual: of float") {
  const gs::dual<float> v{0.5F, 1.0F};
  CHECK(gs::exp(v).slope == std::exp(0.5F));
  CHECK((v * 2).slope == 2.0F);
}

TEST_CASE("dual: powers at 0 and of negative numbers") {
  CHECK(gs::pow(x(0), real(2)).slope == 0);
  CHECK(gs::pow(x(0), real(1)).slope == 1);
  CHECK(gs::pow(x(0), real(0)).slope == 0);
  CHECK(gs::pow(real(0), x(2)).slope == 0);
  CHECK(gs::pow(x(-2), real(3)).slope == 12);
  CHECK(std::isnan(gs::pow(x(-2), x(3)).slope));  // no derivative with respect to the exponent
}

}  // namespace

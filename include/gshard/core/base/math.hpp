// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Scalar functions for the lambdas of map, on numbers and dual numbers: exp, log, tanh, sqrt, abs, max, min, relu, select.
//
// Call them as gshard::exp. An unqualified `abs` of a float may call the one for int. Compiler builtins keep <cmath>, a third of the
// planner's include cost, out of the planner.
//
// NaN propagates: if an operand of max, min, relu or abs is NaN, the result and its derivative are NaN. Comparisons with a NaN are false.
// The branch that `select` does not take has no effect. 0 and -0 are equal; max and min may return either of them.

#include <gshard/core/base/compiler.hpp>

#include <concepts>

namespace gshard { inline namespace v0 {

namespace detail {
// For numbers and for vectors of numbers.
inline constexpr auto larger = [](const auto& a, const auto& b) { return ((a > b) | (a != a)) ? a : b; };
inline constexpr auto smaller = [](const auto& a, const auto& b) { return ((a < b) | (a != a)) ? a : b; };
constexpr bool is_finite(double x) { return __builtin_isfinite(x); }
}  // namespace detail

template <std::floating_point T>
constexpr T exp(T x) {
  if constexpr (sizeof(T) == sizeof(float)) return __builtin_expf(x);
  else return __builtin_exp(x);
}
template <std::floating_point T>
constexpr T log(T x) {
  if constexpr (sizeof(T) == sizeof(float)) return __builtin_logf(x);
  else return __builtin_log(x);
}
template <std::floating_point T>
constexpr T tanh(T x) {
  if constexpr (sizeof(T) == sizeof(float)) return __builtin_tanhf(x);
  else return __builtin_tanh(x);
}
template <std::floating_point T>
constexpr T sin(T x) {
  if constexpr (sizeof(T) == sizeof(float)) return __builtin_sinf(x);
  else return __builtin_sin(x);
}
template <std::floating_point T>
constexpr T cos(T x) {
  if constexpr (sizeof(T) == sizeof(float)) return __builtin_cosf(x);
  else return __builtin_cos(x);
}
template <std::floating_point T>
constexpr T erf(T x) {
  if constexpr (sizeof(T) == sizeof(float)) return __builtin_erff(x);
  else return __builtin_erf(x);
}
template <std::floating_point T>
constexpr T pow(T x, T power) {
  if constexpr (sizeof(T) == sizeof(float)) return __builtin_powf(x, power);
  else return __builtin_pow(x, power);
}
template <std::floating_point T>
constexpr T sqrt(T x) {
  if constexpr (sizeof(T) == sizeof(float)) return __builtin_sqrtf(x);
  else return __builtin_sqrt(x);
}
template <std::floating_point T>
constexpr T abs(T x) {
  if constexpr (sizeof(T) == sizeof(float)) return __builtin_fabsf(x);
  else return __builtin_fabs(x);
}
template <std::floating_point T>
constexpr T max(T a, T b) {
  return detail::larger(a, b);
}
template <std::floating_point T>
constexpr T min(T a, T b) {
  return detail::smaller(a, b);
}
/// max(x, 0), in one comparison.
template <std::floating_point T>
constexpr T relu(T x) {
  return x < T(0) ? T(0) : x;
}
/// `condition ? a : b` as a function, which also takes dual numbers.
template <class T>
constexpr T select(bool condition, T a, T b) {
  return condition ? a : b;
}

}}  // namespace gshard::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>

// The scalar functions that user lambdas of `map` call, as gshard::exp: they take numbers and duals alike. (Unqualified, `abs` of a
// float may be that of int.)
// Compiler builtins keep <cmath>, a third of the planner's include cost, out of floors 1-4.
namespace gshard { inline namespace v0 {

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
constexpr T sqrt(T x) {
  if constexpr (sizeof(T) == sizeof(float)) return __builtin_sqrtf(x);
  else return __builtin_sqrt(x);
}
template <std::floating_point T>
constexpr T abs(T x) {
  return x < T(0) ? -x : x;
}
template <std::floating_point T>
constexpr T max(T a, T b) {
  return a < b ? b : a;
}
template <std::floating_point T>
constexpr T min(T a, T b) {
  return b < a ? b : a;
}
/// `condition ? a : b`, spelt so that it also works on dual numbers.
template <class T>
constexpr T select(bool condition, T a, T b) {
  return condition ? a : b;
}

}}  // namespace gshard::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/base/math.hpp>

#include <concepts>

namespace gshard { inline namespace v0 {

/// A value with its derivative: calling a user's generic lambda on duals yields its exact derivative (forward mode).
template <std::floating_point T>
struct dual {
  T value{};
  T slope{};

  constexpr dual() = default;
  constexpr dual(T v, T s) : value(v), slope(s) {}
  template <class Number>
    requires std::integral<Number> || std::floating_point<Number>
  constexpr dual(Number v) : value(static_cast<T>(v)) {}

  friend constexpr dual operator+(dual a) { return a; }
  friend constexpr dual operator-(dual a) { return {-a.value, -a.slope}; }
  friend constexpr dual operator+(dual a, dual b) { return {a.value + b.value, a.slope + b.slope}; }
  friend constexpr dual operator-(dual a, dual b) { return {a.value - b.value, a.slope - b.slope}; }
  friend constexpr dual operator*(dual a, dual b) {
    return {a.value * b.value, a.slope * b.value + a.value * b.slope};
  }
  friend constexpr dual operator/(dual a, dual b) {
    return {a.value / b.value, (a.slope * b.value - a.value * b.slope) / (b.value * b.value)};
  }
  friend constexpr bool operator<(dual a, dual b) { return a.value < b.value; }
  friend constexpr bool operator>(dual a, dual b) { return a.value > b.value; }
  friend constexpr bool operator<=(dual a, dual b) { return a.value <= b.value; }
  friend constexpr bool operator>=(dual a, dual b) { return a.value >= b.value; }
  friend constexpr bool operator==(dual a, dual b) { return a.value == b.value; }

  friend constexpr dual exp(dual x) {
    const T e = gshard::exp(x.value);
    return {e, e * x.slope};
  }
  friend constexpr dual log(dual x) { return {gshard::log(x.value), x.slope / x.value}; }
  friend constexpr dual tanh(dual x) {
    const T t = gshard::tanh(x.value);
    return {t, (T(1) - t * t) * x.slope};
  }
  friend constexpr dual sqrt(dual x) {
    const T r = gshard::sqrt(x.value);
    return {r, x.slope / (T(2) * r)};
  }
  friend constexpr dual abs(dual x) { return x.value < T(0) ? -x : x; }
  friend constexpr dual max(dual a, dual b) { return a.value < b.value ? b : a; }
  friend constexpr dual min(dual a, dual b) { return b.value < a.value ? b : a; }
};

}}  // namespace gshard::v0

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
};

// At namespace scope, so that a lambda may call gshard::exp on a number and on a dual alike.
template <class T>
constexpr dual<T> exp(dual<T> x) {
  const T e = exp(x.value);
  return {e, e * x.slope};
}
template <class T>
constexpr dual<T> log(dual<T> x) {
  return {log(x.value), x.slope / x.value};
}
template <class T>
constexpr dual<T> tanh(dual<T> x) {
  const T t = tanh(x.value);
  return {t, (T(1) - t * t) * x.slope};
}
template <class T>
constexpr dual<T> sqrt(dual<T> x) {
  const T r = sqrt(x.value);
  return {r, x.slope / (T(2) * r)};
}
template <class T>
constexpr dual<T> abs(dual<T> x) {
  return x.value < T(0) ? -x : x;
}
template <class T>
constexpr dual<T> max(dual<T> a, dual<T> b) {
  return a.value < b.value ? b : a;
}
template <class T>
constexpr dual<T> min(dual<T> a, dual<T> b) {
  return b.value < a.value ? b : a;
}

}}  // namespace gshard::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Dual numbers: exact derivatives of the scalar functions of map (forward mode).

#include <gshard/core/base/math.hpp>

#include <concepts>
#include <type_traits>

namespace gshard { inline namespace v0 {

/// A plain number, which has no derivative: a constant.
template <class N>
concept plain_number = std::integral<N> || std::floating_point<N>;

namespace detail {
template <class T>
inline constexpr bool knows_derivative = false;
template <class>
struct once_for {
  using type = void;
};
// `Once` is one type for all numbers, so that the assertion fires once. The result is deduced, so that it fires at the call.
template <class Once>
constexpr auto refuse_plain_function() {
  static_assert(knows_derivative<Once>,
                "gshard: map differentiates its function: call gshard::exp, log, tanh, sqrt, abs, max, min or select in it, not std's");
  return true;
}
}  // namespace detail

/// A value with its derivative. Calling a user's generic lambda on duals yields its exact derivative (forward mode).
template <std::floating_point T>
struct dual {
  T value{};
  T slope{};

  constexpr dual() = default;
  constexpr dual(T v, T s) : value(v), slope(s) {}
  template <plain_number Number>
  constexpr dual(Number v) : value(static_cast<T>(v)) {}
  /// Refused: functions of plain numbers, such as std::tanh, lose the derivative. The conversion to long double is implicit, so that such a
  /// call is found. The others are explicit, because `v < 0 ? 0 : v` could otherwise convert either side to the other.
  template <class Number>
    requires(std::same_as<Number, long double>)
  constexpr operator Number() const noexcept(detail::refuse_plain_function<typename detail::once_for<T>::type>()) {
    return value;
  }
  template <plain_number Number>
    requires(!std::same_as<Number, long double>)
  constexpr explicit operator Number() const noexcept(detail::refuse_plain_function<typename detail::once_for<T>::type>()) {
    return Number(value);
  }

  friend constexpr dual operator+(dual a) { return a; }
  friend constexpr dual operator-(dual a) { return {-a.value, -a.slope}; }
  friend constexpr dual operator+(dual a, dual b) { return {a.value + b.value, a.slope + b.slope}; }
  friend constexpr dual operator-(dual a, dual b) { return {a.value - b.value, a.slope - b.slope}; }
  friend constexpr dual operator*(dual a, dual b) {
    return {a.value * b.value, a.slope * b.value + a.value * b.slope};
  }
  friend constexpr dual operator/(dual a, dual b) {
    const T quotient = a.value / b.value;
    return {quotient, (a.slope - quotient * b.slope) / b.value};  // b^2 might overflow
  }
  friend constexpr bool operator<(dual a, dual b) { return a.value < b.value; }
  friend constexpr bool operator>(dual a, dual b) { return a.value > b.value; }
  friend constexpr bool operator<=(dual a, dual b) { return a.value <= b.value; }
  friend constexpr bool operator>=(dual a, dual b) { return a.value >= b.value; }
  friend constexpr bool operator==(dual a, dual b) { return a.value == b.value; }

  // Exact overloads for plain numbers. Otherwise the conversions in both directions would be ambiguous.
  template <plain_number N>
  friend constexpr dual operator+(dual a, N b) {
    return a + dual(b);
  }
  template <plain_number N>
  friend constexpr dual operator+(N a, dual b) {
    return dual(a) + b;
  }
  template <plain_number N>
  friend constexpr dual operator-(dual a, N b) {
    return a - dual(b);
  }
  template <plain_number N>
  friend constexpr dual operator-(N a, dual b) {
    return dual(a) - b;
  }
  template <plain_number N>
  friend constexpr dual operator*(dual a, N b) {
    return a * dual(b);
  }
  template <plain_number N>
  friend constexpr dual operator*(N a, dual b) {
    return dual(a) * b;
  }
  template <plain_number N>
  friend constexpr dual operator/(dual a, N b) {
    return a / dual(b);
  }
  template <plain_number N>
  friend constexpr dual operator/(N a, dual b) {
    return dual(a) / b;
  }
  template <plain_number N>
  friend constexpr bool operator<(dual a, N b) {
    return a.value < T(b);
  }
  template <plain_number N>
  friend constexpr bool operator<(N a, dual b) {
    return T(a) < b.value;
  }
  template <plain_number N>
  friend constexpr bool operator>(dual a, N b) {
    return a.value > T(b);
  }
  template <plain_number N>
  friend constexpr bool operator>(N a, dual b) {
    return T(a) > b.value;
  }
  template <plain_number N>
  friend constexpr bool operator<=(dual a, N b) {
    return a.value <= T(b);
  }
  template <plain_number N>
  friend constexpr bool operator<=(N a, dual b) {
    return T(a) <= b.value;
  }
  template <plain_number N>
  friend constexpr bool operator>=(dual a, N b) {
    return a.value >= T(b);
  }
  template <plain_number N>
  friend constexpr bool operator>=(N a, dual b) {
    return T(a) >= b.value;
  }
  template <plain_number N>
  friend constexpr bool operator==(dual a, N b) {
    return a.value == T(b);
  }
};

// At namespace scope, so that a lambda may call gshard::exp on numbers and on duals.
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
constexpr dual<T> sin(dual<T> x) {
  return {sin(x.value), cos(x.value) * x.slope};
}
template <class T>
constexpr dual<T> cos(dual<T> x) {
  return {cos(x.value), -sin(x.value) * x.slope};
}
template <class T>
constexpr dual<T> erf(dual<T> x) {
  constexpr T two_over_root_of_pi = T(1.1283791670955125739);
  return {erf(x.value), two_over_root_of_pi * exp(-x.value * x.value) * x.slope};
}
/// A constant power or base adds nothing to the slope. The slope by the power at base 0 is 0.
template <class T>
constexpr dual<T> pow(dual<T> x, dual<T> power) {
  const T y = pow(x.value, power.value);
  T slope = 0;
  if (x.slope != T(0)) slope += power.value == T(0) ? T(0) : power.value * pow(x.value, power.value - T(1)) * x.slope;
  if (power.slope != T(0)) slope += x.value == T(0) ? T(0) : y * log(x.value) * power.slope;
  return {y, slope};
}
template <class T>
constexpr dual<T> sqrt(dual<T> x) {
  const T r = sqrt(x.value);
  return {r, x.slope == T(0) ? T(0) : x.slope / (T(2) * r)};  // the slope of a constant is 0, also at 0
}

// These functions choose their slope by a comparison. If the operands are equal, max and min take the mean of both slopes. The slope of abs
// and relu at 0 is 0. At NaN the slope is NaN.
template <class T>
constexpr dual<T> abs(dual<T> x) {
  return {abs(x.value), x.value < T(0) ? -x.slope : x.value > T(0) ? x.slope : x.value};
}
template <class T>
constexpr dual<T> relu(dual<T> x) {
  return {relu(x.value), x.value > T(0) ? x.slope : x.value <= T(0) ? T(0) : x.value};
}
namespace detail {
/// The slope of the chosen operand. The mean of both slopes if the operands are equal, otherwise NaN.
template <class T>
constexpr T slope_of_one(dual<T> a, dual<T> b, bool is_a, bool is_b) {
  if (is_a || is_b) return is_a ? a.slope : b.slope;
  if (a.value == b.value) return (a.slope + b.slope) / T(2);
  return a.value != a.value ? a.value : b.value;  // not a.value + b.value: clang refuses sums of NaN in constants
}
}  // namespace detail
template <class T>
constexpr dual<T> max(dual<T> a, dual<T> b) {
  return {max(a.value, b.value), detail::slope_of_one(a, b, a > b, a < b)};
}
template <class T>
constexpr dual<T> min(dual<T> a, dual<T> b) {
  return {min(a.value, b.value), detail::slope_of_one(a, b, a < b, a > b)};
}

namespace detail {
template <class A, class B>
struct mixed {};
template <std::floating_point T, plain_number N>
  requires(!std::same_as<T, N>)
struct mixed<T, N> {
  using type = decltype(T() + N());
};
template <std::integral N, std::floating_point T>
struct mixed<N, T> {
  using type = T;
};
template <class T, plain_number N>
struct mixed<dual<T>, N> {
  using type = dual<T>;
};
template <class T, plain_number N>
struct mixed<N, dual<T>> {
  using type = dual<T>;
};
template <class A, class B>
using mixed_t = typename mixed<A, B>::type;
}  // namespace detail

/// Plain numbers mix with duals: max(v, 0), select(v > 0, v, 0).
template <class A, class B, class T = detail::mixed_t<A, B>>
constexpr T max(A a, B b) {
  return max(T(a), T(b));
}
template <class A, class B, class T = detail::mixed_t<A, B>>
constexpr T min(A a, B b) {
  return min(T(a), T(b));
}
template <class A, class B, class T = detail::mixed_t<A, B>>
constexpr T pow(A x, B power) {
  return pow(T(x), T(power));
}
template <class A, class B, class T = detail::mixed_t<A, B>>
constexpr T select(bool condition, A a, B b) {
  return condition ? T(a) : T(b);
}

}}  // namespace gshard::v0

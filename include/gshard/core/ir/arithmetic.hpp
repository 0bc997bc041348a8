// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The library's own element-wise functions, which exist for more element types than float and double, and the list of them.

#include <gshard/core/ir/dtype.hpp>

#include <type_traits>

namespace gshard { inline namespace v0 { namespace detail {

template <class T>
inline constexpr bool has_parts = requires(T x) { x.imag(); };

template <class T>
struct modular_type {
  using type = T;
};
template <class T>
  requires(std::is_integral_v<T>)
struct modular_type<T> {
  using type = std::make_unsigned_t<T>;
};
/// The type in which numbers are added and multiplied: for integers, a type whose overflow is defined.
template <class T>
using modular = typename modular_type<T>::type;

/// a + b.
template <class T>
constexpr T total(const T& a, const T& b) {
  if constexpr (std::is_integral_v<T>) return T(modular<T>(a) + modular<T>(b));
  else return a + b;
}
/// a * b. Complex numbers by their formula, without the special cases of operator*: infinity times a number may be NaN.
template <class T>
constexpr T product(const T& a, const T& b) {
  if constexpr (has_parts<T>) return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  else if constexpr (std::is_integral_v<T>) return T(modular<T>(a) * modular<T>(b));
  else return a * b;
}
/// The complex conjugate. A real number is returned unchanged.
template <class T>
constexpr T conjugate_of(const T& x) {
  if constexpr (has_parts<T>) return {x.real(), -x.imag()};
  else return x;
}

/// The functions, one type each: its number of operands, the element types that have it, and its value. Integers are computed modulo 2^n.
/// A `..._slope` is the gradient of an operand, from the operands and the gradient dy of the result: dy times the derivative's conjugate.
namespace arithmetic {

template <int Number>
struct constant {
  static constexpr int arity = 0;
  static constexpr element_set types = all_elements;
  template <class T>
  static T value() {
    return T(Number);
  }
};
using zero = constant<0>;
using one = constant<1>;
struct identity {
  static constexpr int arity = 1;
  static constexpr element_set types = all_elements;
  template <class T>
  constexpr T operator()(T a) const {
    return a;
  }
};
struct conjugate {
  static constexpr int arity = 1;
  static constexpr element_set types = reals | complexes;
  template <class T>
  constexpr T operator()(T a) const {
    return conjugate_of(a);
  }
};
struct conjugate_slope {
  static constexpr int arity = 2;
  static constexpr element_set types = reals | complexes;
  template <class T>
  constexpr T operator()(T, T dy) const {
    return conjugate_of(dy);
  }
};
struct add {
  static constexpr int arity = 2;
  static constexpr element_set types = reals | complexes | integers;
  template <class T>
  constexpr T operator()(T a, T b) const {
    return total(a, b);
  }
};
struct subtract {
  static constexpr int arity = 2;
  static constexpr element_set types = reals | complexes | integers;
  template <class T>
  constexpr T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) return T(modular<T>(a) - modular<T>(b));
    else return a - b;
  }
};
struct multiply {
  static constexpr int arity = 2;
  static constexpr element_set types = reals | complexes | integers;
  template <class T>
  constexpr T operator()(T a, T b) const {
    return product(a, b);
  }
};
struct multiply_left_slope {
  static constexpr int arity = 3;
  static constexpr element_set types = reals | complexes;
  template <class T>
  constexpr T operator()(T, T b, T dy) const {
    return product(dy, conjugate_of(b));
  }
};
struct multiply_right_slope {
  static constexpr int arity = 3;
  static constexpr element_set types = reals | complexes;
  template <class T>
  constexpr T operator()(T a, T, T dy) const {
    return product(dy, conjugate_of(a));
  }
};
struct divide {
  static constexpr int arity = 2;
  static constexpr element_set types = reals | complexes;
  template <class T>
  constexpr T operator()(T a, T b) const {
    return a / b;
  }
};
struct divide_left_slope {
  static constexpr int arity = 3;
  static constexpr element_set types = reals | complexes;
  template <class T>
  constexpr T operator()(T, T b, T dy) const {
    return dy / conjugate_of(b);
  }
};
struct divide_right_slope {
  static constexpr int arity = 3;
  static constexpr element_set types = reals | complexes;
  template <class T>
  constexpr T operator()(T a, T b, T dy) const {
    return -product(dy, conjugate_of(a / b)) / conjugate_of(b);
  }
};
/// 1 if true, else 0.
struct less {
  static constexpr int arity = 2;
  static constexpr element_set types = reals | integers;
  template <class T>
  constexpr T operator()(T a, T b) const {
    return a < b ? T(1) : T(0);
  }
};
struct at_most {
  static constexpr int arity = 2;
  static constexpr element_set types = reals | integers;
  template <class T>
  constexpr T operator()(T a, T b) const {
    return a <= b ? T(1) : T(0);
  }
};
struct equal {
  static constexpr int arity = 2;
  static constexpr element_set types = reals | complexes | integers | masks;
  template <class T>
  constexpr T operator()(T a, T b) const {
    return a == b ? T(1) : T(0);
  }
};
/// a where the condition is not 0, else b.
struct choose {
  static constexpr int arity = 3;
  static constexpr element_set types = all_elements;
  template <class T>
  constexpr T operator()(T condition, T a, T b) const {
    return condition == T(0) ? b : a;
  }
};
struct choose_left_slope {
  static constexpr int arity = 4;
  static constexpr element_set types = reals | complexes;
  template <class T>
  constexpr T operator()(T condition, T, T, T dy) const {
    return condition == T(0) ? T(0) : dy;
  }
};
struct choose_right_slope {
  static constexpr int arity = 4;
  static constexpr element_set types = reals | complexes;
  template <class T>
  constexpr T operator()(T condition, T, T, T dy) const {
    return condition == T(0) ? dy : T(0);
  }
};
/// x where a equals b, else 0: the elements of a diagonal.
struct where_equal {
  static constexpr int arity = 3;
  static constexpr element_set types = reals | complexes | integers;
  template <class T>
  constexpr T operator()(T x, T a, T b) const {
    return a == b ? x : T(0);
  }
};
struct both {
  static constexpr int arity = 2;
  static constexpr element_set types = masks;
  constexpr bool operator()(bool a, bool b) const { return a && b; }
};
struct either {
  static constexpr int arity = 2;
  static constexpr element_set types = masks;
  constexpr bool operator()(bool a, bool b) const { return a || b; }
};
struct negation {
  static constexpr int arity = 1;
  static constexpr element_set types = masks;
  constexpr bool operator()(bool a) const { return !a; }
};
/// a / b rounded towards zero. Without an error: a / 0 is 0.
struct quotient {
  static constexpr int arity = 2;
  static constexpr element_set types = integers;
  template <class T>
  constexpr T operator()(T a, T b) const {
    if (b == T(0)) return T(0);
    if (b == T(-1)) return T(modular<T>(0) - modular<T>(a));  // the quotient of the smallest number overflows
    return T(a / b);
  }
};
/// a - b * floor(a / b): the remainder with the sign of b. Without an error: it is 0 for b = 0.
struct modulo {
  static constexpr int arity = 2;
  static constexpr element_set types = integers;
  template <class T>
  constexpr T operator()(T a, T b) const {
    if (b == T(0) || b == T(-1)) return T(0);
    const T rest = T(a % b);
    return rest != T(0) && (rest < T(0)) != (b < T(0)) ? T(rest + b) : rest;
  }
};

/// Calls f(F{}) with each function, in order. Its place in this list is its number.
template <class Visitor>
constexpr void for_each_function(Visitor f) {
  const auto all = [&]<class... F>(F... function) { (f(function), ...); };
  all(zero{}, one{}, identity{}, conjugate{}, conjugate_slope{}, add{}, subtract{}, multiply{}, multiply_left_slope{},
      multiply_right_slope{}, divide{}, divide_left_slope{}, divide_right_slope{}, less{}, at_most{}, equal{}, choose{},
      choose_left_slope{}, choose_right_slope{}, where_equal{}, both{}, either{}, negation{}, quotient{}, modulo{});
}
template <class Wanted>
inline constexpr int number_of = [] {
  int functions_before = 0, its_number = -1;
  for_each_function([&]<class F>(F) {
    if (std::is_same_v<F, Wanted>) its_number = functions_before;
    ++functions_before;
  });
  return its_number;
}();

}  // namespace arithmetic
}}}  // namespace gshard::v0::detail

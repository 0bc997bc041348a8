// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Elementwise comparisons and selection: less, equal and select.
//
// Conditions are tensors of zeros and ones. Templates, so that only programs that use these verbs pay for them.

#include <gshard/trace/builder.hpp>
#include <gshard/trace/map.hpp>

namespace gshard { inline namespace v0 {

namespace detail {
inline constexpr auto one_if_less = [](auto x, auto y) { return x < y ? decltype(x)(1) : decltype(x)(0); };
inline constexpr auto one_if_at_most = [](auto x, auto y) { return x <= y ? decltype(x)(1) : decltype(x)(0); };
inline constexpr auto one_if_equal = [](auto x, auto y) { return x == y ? decltype(x)(1) : decltype(x)(0); };

/// A tensor with the dims of another one, filled with a number.
template <class = void>
constexpr symbol filled(symbol like, double c) {
  return like.owner->failed() ? like.owner->nothing() : emit_filled(like, c);
}
}  // namespace detail

/// less(a, b), a < b: 1 where a < b, else 0. Comparisons with NaN are 0. Either operand may be a number. It has no gradient.
/// Shapes: operands match as those of map.
/// Communicates: nothing if the operands have one sharding.
/// Compile time: that dims match; one real element type.
/// Throws: nothing.
/// @see select, equal
template <class = void>
constexpr symbol less(here a, symbol b) {
  return map<detail::one_if_less>(a, b);
}
template <class = void>
constexpr symbol less(here a, double b) {
  return less(a, detail::filled(a, b));
}
template <class = void>
constexpr symbol less(double a, here b) {
  return less(here(detail::filled(b, a), b), b);
}
/// Comparisons: 1 if true, else 0. With a NaN they are false, as for numbers.
template <class = void>
constexpr symbol operator<(here a, symbol b) {
  return less(a, b);
}
template <class = void>
constexpr symbol operator<(here a, double b) {
  return less(a, b);
}
template <class = void>
constexpr symbol operator<(double a, here b) {
  return less(a, b);
}
template <class = void>
constexpr symbol operator>(here a, symbol b) {
  return less(here(b, a), a);
}
template <class = void>
constexpr symbol operator>(here a, double b) {
  return less(b, a);
}
template <class = void>
constexpr symbol operator>(double a, here b) {
  return less(b, a);
}
template <class = void>
constexpr symbol operator<=(here a, symbol b) {
  return map<detail::one_if_at_most>(a, b);
}
template <class = void>
constexpr symbol operator<=(here a, double b) {
  return map<detail::one_if_at_most>(a, detail::filled(a, b));
}
template <class = void>
constexpr symbol operator<=(double a, here b) {
  return map<detail::one_if_at_most>(here(detail::filled(b, a), b), symbol(b));
}
template <class = void>
constexpr symbol operator>=(here a, symbol b) {
  return map<detail::one_if_at_most>(here(b, a), symbol(a));
}
template <class = void>
constexpr symbol operator>=(here a, double b) {
  return b <= a;
}
template <class = void>
constexpr symbol operator>=(double a, here b) {
  return b <= a;
}

/// equal(a, b): 1 where a == b, else 0. Comparisons with NaN are 0. Either operand may be a number. It has no gradient.
/// Shapes: operands match as those of map.
/// Communicates: nothing if the operands have one sharding.
/// Compile time: that dims match; one real element type.
/// Throws: nothing.
/// @see select, less
template <class = void>
constexpr symbol equal(here a, symbol b) {
  return map<detail::one_if_equal>(a, b);
}
template <class = void>
constexpr symbol equal(here a, double b) {
  return equal(a, detail::filled(a, b));
}
template <class = void>
constexpr symbol equal(double a, here b) {
  return equal(b, a);
}
/// select(condition, a, b): a where the condition is not 0, else b. a and b may be numbers. No gradient flows into the condition.
/// Shapes: operands match as those of map.
/// Communicates: nothing if the operands have one sharding.
/// Compile time: that dims match; one real element type.
/// Throws: nothing.
/// @see less, equal
template <class = void>
constexpr symbol select(here condition, symbol a, symbol b) {
  return map<[](auto c, auto x, auto y) { return c == decltype(c)(0) ? y : x; }>(condition, a, b);
}
template <class = void>
constexpr symbol select(here condition, symbol a, double b) {
  return select(condition, a, detail::filled(a, b));
}
template <class = void>
constexpr symbol select(here condition, double a, symbol b) {
  return select(condition, detail::filled(b, a), b);
}
template <class = void>
constexpr symbol select(here condition, double a, double b) {
  return select(condition, detail::filled(condition, a), detail::filled(condition, b));
}

}}  // namespace gshard::v0

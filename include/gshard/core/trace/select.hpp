// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Elementwise comparisons, selection and logic: less, equal, select, logical_and, logical_or and logical_not.
//
// The results of comparisons are tensors of zeros and ones. Templates, so that only programs that use these verbs pay for them.

#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/map.hpp>

namespace gshard { inline namespace v0 {

namespace detail {
/// 1 where the function is true, else 0.
template <class F>
constexpr symbol emit_compared(here a, symbol b) {
  return emit_map(*a.owner, own_step<F>, std::array<symbol, 2>{a, b});
}

/// The function of select(condition, a, b). Its slopes read the condition alone.
template <class = void>
inline constexpr auto& choice =
    own_function<arithmetic::choose, arithmetic::zero, arithmetic::choose_left_slope, arithmetic::choose_right_slope>;

/// A tensor with the dims of another one, filled with a number.
template <class = void>
constexpr symbol filled(symbol like, double c) {
  return like.owner->failed() ? like.owner->nothing() : emit_filled(like, c);
}
}  // namespace detail

/// less(a, b), a < b: 1 where a < b, else 0. Comparisons with NaN are 0. Either operand may be a number. It has no gradient.
/// Shapes: operands match as in map.
/// Communicates: nothing if the operands have one sharding.
/// Compile time: that dims match; one element type, of real numbers or integers.
/// Throws: nothing.
/// @see select, equal
template <class = void>
constexpr symbol less(here a, symbol b) {
  return detail::emit_compared<detail::arithmetic::less>(a, b);
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
  return detail::emit_compared<detail::arithmetic::at_most>(a, b);
}
template <class = void>
constexpr symbol operator<=(here a, double b) {
  return detail::emit_compared<detail::arithmetic::at_most>(a, detail::filled(a, b));
}
template <class = void>
constexpr symbol operator<=(double a, here b) {
  return detail::emit_compared<detail::arithmetic::at_most>(here(detail::filled(b, a), b), symbol(b));
}
template <class = void>
constexpr symbol operator>=(here a, symbol b) {
  return detail::emit_compared<detail::arithmetic::at_most>(here(b, a), symbol(a));
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
/// Shapes: operands match as in map.
/// Communicates: nothing if the operands have one sharding.
/// Compile time: that dims match; one element type, not of half precision.
/// Throws: nothing.
/// @see select, less
template <class = void>
constexpr symbol equal(here a, symbol b) {
  return detail::emit_compared<detail::arithmetic::equal>(a, b);
}
template <class = void>
constexpr symbol equal(here a, double b) {
  return equal(a, detail::filled(a, b));
}
template <class = void>
constexpr symbol equal(double a, here b) {
  return equal(b, a);
}
/// select(condition, a, b): a where the condition is not 0, else b. a and b may be numbers. No gradient flows into the condition, which is
/// a mask (bool) or has the element type of a and b.
/// Shapes: operands match as in map.
/// Communicates: nothing if the operands have one sharding.
/// Compile time: that dims match; element types.
/// Throws: nothing.
/// @see less, equal, logical_and
template <class = void>
constexpr symbol select(here condition, symbol a, symbol b) {
  const bool is_mask = !condition.owner->failed() && condition.get().type == dtype::boolean && condition.owner->has(a);
  const symbol c = is_mask ? detail::emit_cast(condition, a.get().type) : condition;
  return detail::emit_map(*condition.owner, detail::choice<>, std::array<symbol, 3>{c, a, b});
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
  const symbol yes = detail::filled(condition, a), no = detail::filled(condition, b);
  return select(condition, yes, no);
}

/// logical_and(a, b): true where both masks (bool) are true.
/// Shapes: operands match as in map.
/// Communicates: nothing if the operands have one sharding.
/// Compile time: that dims match; that operands are masks.
/// Throws: nothing.
/// @see select, cast
template <class = void>
constexpr symbol logical_and(here a, symbol b) {
  return detail::emit_map(*a.owner, detail::own_function<detail::arithmetic::both>, std::array<symbol, 2>{a, b});
}
/// logical_or(a, b): true where at least one of two masks (bool) is true.
/// Shapes: operands match as in map.
/// Communicates: nothing if the operands have one sharding.
/// Compile time: that dims match; that operands are masks.
/// Throws: nothing.
/// @see logical_and
template <class = void>
constexpr symbol logical_or(here a, symbol b) {
  return detail::emit_map(*a.owner, detail::own_function<detail::arithmetic::either>, std::array<symbol, 2>{a, b});
}
/// logical_not(a): true where a mask (bool) is false.
/// Shapes: any -> the same.
/// Communicates: nothing.
/// Compile time: that a is a mask.
/// Throws: nothing.
/// @see logical_and
template <class = void>
constexpr symbol logical_not(here a) {
  return detail::emit_map(*a.owner, detail::own_function<detail::arithmetic::negation>, std::array<symbol, 1>{a});
}

GSHARD_TAKES(less, (detail::compares<Given...>), "less(a, b) takes two tensors of a program, or a tensor and a number")
GSHARD_TAKES(equal, (detail::compares<Given...>), "equal(a, b) takes two tensors of a program, or a tensor and a number")
GSHARD_TAKES(select,
             (detail::call<3, symbol, symbol, symbol>::fits<Given...> || detail::call<3, symbol, symbol, double>::fits<Given...> ||
              detail::call<3, symbol, double, symbol>::fits<Given...> || detail::call<3, symbol, double, double>::fits<Given...>),
             "select(condition, a, b) takes three tensors of a program; a and b may be numbers")
GSHARD_TAKES(logical_and, (!detail::with_tensor<Given...> || detail::call<2, symbol, symbol>::fits<Given...>),
             "logical_and(a, b) takes two tensors of a program")
GSHARD_TAKES(logical_or, (!detail::with_tensor<Given...> || detail::call<2, symbol, symbol>::fits<Given...>),
             "logical_or(a, b) takes two tensors of a program")
GSHARD_TAKES(logical_not, (!detail::with_tensor<Given...> || detail::call<1, symbol>::fits<Given...>),
             "logical_not(a) takes one tensor of a program")

}}  // namespace gshard::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Comparisons, selection and logic on tensors outside of programs. Operands match as in map: equal extents, or a scalar; one may be
// a number. The results of comparisons are tensors of zeros and ones.

#include <gshard/core/trace/select.hpp>
#include <gshard/eager/map.hpp>
#include <gshard/exec/tensor/tensor.hpp>

#include <type_traits>

namespace gshard { inline namespace v0 {

namespace detail {
template <class F>
inline constexpr auto compare_model = [](auto&, auto a, auto b) { return emit_compared<F>(a, b); };

template <class F, class A, class B>
auto compare(const A& a, const B& b) {
  return run_with_numbers<compare_model<F>>("compare", a, b);
}
}  // namespace detail

/// less(a, b), a < b on tensors: 1 where a < b, else 0. Comparisons with NaN are 0. One operand may be a number.
/// Shapes: operands match as in map.
/// Communicates: nothing if the operands have one sharding.
/// Compile time: ranks; that integers are compared with integers.
/// Throws: `gshard::error` if operands differ in an extent, or a number is beyond the integer type.
/// @see map
template <class A, class B>
  requires(detail::combined<A, B>)
auto less(const A& a, const B& b) {
  return detail::compare<detail::arithmetic::less>(a, b);
}
/// equal(a, b) on tensors: 1 where a == b, else 0. Comparisons with NaN are 0. One operand may be a number.
/// Shapes: operands match as in map.
/// Communicates: nothing if the operands have one sharding.
/// Compile time: ranks.
/// Throws: `gshard::error` if operands differ in an extent.
/// @see map
template <class A, class B>
  requires(detail::combined<A, B>)
auto equal(const A& a, const B& b) {
  return detail::compare<detail::arithmetic::equal>(a, b);
}
template <class A, class B>
  requires(detail::combined<A, B>)
auto operator<(const A& a, const B& b) {
  return less(a, b);
}
template <class A, class B>
  requires(detail::combined<A, B>)
auto operator>(const A& a, const B& b) {
  return less(b, a);
}
template <class A, class B>
  requires(detail::combined<A, B>)
auto operator<=(const A& a, const B& b) {
  return detail::compare<detail::arithmetic::at_most>(a, b);
}
template <class A, class B>
  requires(detail::combined<A, B>)
auto operator>=(const A& a, const B& b) {
  return b <= a;
}

namespace detail {
inline constexpr auto select_model = [](auto&, auto condition, auto a, auto b) { return select(condition, a, b); };
inline constexpr auto and_model = [](auto&, auto a, auto b) { return logical_and(a, b); };
inline constexpr auto or_model = [](auto&, auto a, auto b) { return logical_or(a, b); };
}  // namespace detail

/// select(condition, a, b) on tensors: a where the condition is not 0, else b. One of a and b may be a number. The condition is a mask
/// (bool) or has the element type of a and b.
/// Shapes: operands match as in map.
/// Communicates: nothing if the operands have one sharding.
/// Compile time: ranks; element types; that operands are complete.
/// Throws: `gshard::error` if operands differ in an extent, or a number is beyond the integer type.
/// @see less, equal, core/trace/select.hpp
template <distributed_tensor Condition, class A, class B>
  requires(detail::combined<A, B>)
auto select(const Condition& condition, const A& a, const B& b) {
  if constexpr (std::is_arithmetic_v<A>) return select(condition, detail::scalar_on<typename B::value_type>("select", b.cluster(), a), b);
  else if constexpr (std::is_arithmetic_v<B>)
    return select(condition, a, detail::scalar_on<typename A::value_type>("select", a.cluster(), b));
  else return detail::run_complete_elementwise<detail::select_model>("select", condition, a, b);
}
/// logical_and(a, b) on tensors: true where both masks (bool) are true.
/// Shapes: operands match as in map.
/// Communicates: nothing if the operands have one sharding.
/// Compile time: ranks; that operands are masks.
/// Throws: `gshard::error` if operands differ in an extent.
/// @see select, cast
template <class A, class B>
auto logical_and(const tensor<bool, A>& a, const tensor<bool, B>& b) {
  return detail::run_elementwise<detail::and_model>("logical_and", a, b);
}
/// logical_or(a, b) on tensors: true where at least one of two masks (bool) is true.
/// Shapes: as logical_and.
/// Communicates: as logical_and.
/// Compile time: as logical_and.
/// Throws: as logical_and.
/// @see logical_and
template <class A, class B>
auto logical_or(const tensor<bool, A>& a, const tensor<bool, B>& b) {
  return detail::run_elementwise<detail::or_model>("logical_or", a, b);
}
// logical_not(a) on masks. @see core/trace/select.hpp
namespace detail {
struct a_mask {};
template <distributed_tensor G>
inline constexpr bool takes<a_mask, G> = std::is_same_v<typename G::value_type, bool>;
using one_mask = call<1, a_mask>;
}  // namespace detail
GSHARD_ON_TENSORS(logical_not, 0, 0, one_mask, by_position, "logical_not(mask) takes one gshard::tensor of bool: cast<bool>(x > y)")

}}  // namespace gshard::v0

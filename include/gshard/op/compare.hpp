// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Comparisons of tensors with tensors and numbers, outside of programs: the results are tensors of zeros and ones. Operands match as those
// of map: equal extents, or a scalar. Communicates as map does: the agreement of the processes, also on a number.

#include <gshard/op/map.hpp>
#include <gshard/tensor/tensor.hpp>
#include <gshard/trace/select.hpp>

#include <string>
#include <type_traits>
#include <utility>

namespace gshard { inline namespace v0 {

namespace detail {
template <class A, class B>
concept compared = (distributed_tensor<A> && (distributed_tensor<B> || std::is_arithmetic_v<B>)) ||
                   (std::is_arithmetic_v<A> && distributed_tensor<B>);

/// A number as a tensor of T. Throws if T is an integer type that lacks the number.
template <class T, class Number>
tensor<T, spec<>> scalar_on(const any_cluster& on, Number number) {
  if constexpr (std::is_integral_v<T>) {
    constexpr bool are_alike = std::is_integral_v<Number> && std::is_same_v<T, bool> == std::is_same_v<Number, bool>;
    static_assert(are_alike, "gshard: tensors of integers are compared with integers, masks with true and false");
    if constexpr (are_alike && !std::is_same_v<T, bool>)
      if (!std::in_range<T>(number)) throw error("compare: " + std::to_string(number) + " is no " + std::string(cpp_name(dtype_of<T>)));
  }
  tensor<T, spec<>> t(on, {});
  for_each_local_shard(t, [&](shard_view<T> s) { *s.data = T(number); });
  tensor_origin origin = t.origin();
  origin.constant = element_text(number);
  t.set_origin(origin);
  return t;
}

template <class F>
inline constexpr auto compare_model = [](auto&, auto a, auto b) { return emit_compared<F>(a, b); };

template <class F, class A, class B>
auto compare(const A& a, const B& b) {
  if constexpr (std::is_arithmetic_v<A>) return compare<F>(scalar_on<typename B::value_type>(b.on(), a), b);
  else if constexpr (std::is_arithmetic_v<B>) return compare<F>(a, scalar_on<typename A::value_type>(a.on(), b));
  else {
    static_assert(holds<all_complete<A, B>, actual_type<typename A::layout_type>, actual_type<typename B::layout_type>>,
                  "gshard: a partial sum is used as a complete tensor; reshard it first");
    return run_elementwise<compare_model<F>>("compare", a, b);
  }
}
}  // namespace detail

/// less(a, b), a < b on tensors: 1 where a < b, else 0. Comparisons with NaN are 0. One operand may be a number.
/// Shapes: operands match as those of map.
/// Communicates: nothing if the operands have one sharding.
/// Compile time: ranks; that integers are compared with integers.
/// Throws: `gshard::error` if operands differ in an extent, or a number is beyond the integer type.
/// @see map
template <class A, class B>
  requires(detail::compared<A, B>)
auto less(const A& a, const B& b) {
  return detail::compare<detail::arithmetic::less>(a, b);
}
/// equal(a, b) on tensors: 1 where a == b, else 0. Comparisons with NaN are 0. One operand may be a number.
/// Shapes: operands match as those of map.
/// Communicates: nothing if the operands have one sharding.
/// Compile time: ranks.
/// Throws: `gshard::error` if operands differ in an extent.
/// @see map
template <class A, class B>
  requires(detail::compared<A, B>)
auto equal(const A& a, const B& b) {
  return detail::compare<detail::arithmetic::equal>(a, b);
}
template <class A, class B>
  requires(detail::compared<A, B>)
auto operator<(const A& a, const B& b) {
  return less(a, b);
}
template <class A, class B>
  requires(detail::compared<A, B>)
auto operator>(const A& a, const B& b) {
  return less(b, a);
}
template <class A, class B>
  requires(detail::compared<A, B>)
auto operator<=(const A& a, const B& b) {
  return detail::compare<detail::arithmetic::at_most>(a, b);
}
template <class A, class B>
  requires(detail::compared<A, B>)
auto operator>=(const A& a, const B& b) {
  return b <= a;
}

}}  // namespace gshard::v0

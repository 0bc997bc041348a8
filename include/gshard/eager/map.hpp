// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Elementwise functions on tensors outside of programs: map, arithmetic (also with numbers), relu, cast and complex numbers.

#include <gshard/core/trace/complex.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/eager/eager_call.hpp>
#include <gshard/exec/tensor/tensor.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace gshard { inline namespace v0 {

namespace detail {
template <auto F>
inline constexpr auto map_model = [](auto&, auto... x) { return map<F>(x...); };
inline constexpr auto add_model = [](auto&, auto a, auto b) { return a + b; };
inline constexpr auto subtract_model = [](auto&, auto a, auto b) { return a - b; };
inline constexpr auto multiply_model = [](auto&, auto a, auto b) { return a * b; };
inline constexpr auto divide_model = [](auto&, auto a, auto b) { return a / b; };
inline constexpr auto negate_model = [](auto&, auto a) { return -a; };
inline constexpr auto relu_model = [](auto&, auto a) { return relu(a); };
template <class To>
inline constexpr auto cast_model = [](auto&, auto a) { return cast<To>(a); };
inline constexpr auto conj_model = [](auto&, auto z) { return conj(z); };
inline constexpr auto real_model = [](auto&, auto z) { return real(z); };
inline constexpr auto imag_model = [](auto&, auto z) { return imag(z); };
inline constexpr auto complex_model = [](auto&, auto x, auto y) { return complex(x, y); };

/// Two tensors, or a tensor and a number.
template <class A, class B>
concept combined = (distributed_tensor<A> && (distributed_tensor<B> || std::is_arithmetic_v<B>)) ||
                   (std::is_arithmetic_v<A> && distributed_tensor<B>);

/// A number as a tensor of T. If T is an integer type that cannot hold the number, the call on the cluster fails on every process.
template <class T, class Number>
tensor<T, spec<>> scalar_on(std::string_view operation, const any_cluster& on, Number number) {
  if constexpr (std::is_integral_v<T>) {
    constexpr bool are_alike = std::is_integral_v<Number> && std::is_same_v<T, bool> == std::is_same_v<Number, bool>;
    static_assert(are_alike, "gshard: tensors of integers are combined with integers, masks with true and false");
    if constexpr (are_alike && !std::is_same_v<T, bool>)
      if (!std::in_range<T>(number))  // begin throws; processes with another number throw in their call of the operation
        on.backend().begin({}, std::string(operation) + ": " + std::to_string(number) + " is no " + std::string(cpp_name(dtype_of<T>)));
  }
  tensor<T, spec<>> t(on, {});
  for_each_local_shard(t, [&](shard_view<T> s) { *s.data = T(number); });
  tensor_origin origin = tensor_access::origin(t);
  origin.constant = number_text(number);
  tensor_access::set_origin(t, origin);
  return t;
}

/// An elementwise operation on tensors. Their dims have no names, so they match by position: every operand has all dims or none.
template <auto Model, class... T, class... Specs>
auto run_elementwise(std::string_view operation, const tensor<T, Specs>&... x) {
  constexpr int largest = std::max({Specs::rank...});
  constexpr bool fits = ((Specs::rank == largest || Specs::rank == 0) && ...);
  static_assert(holds<fits, actual_type<Specs>...>,
                "gshard: elementwise operands have equally many dims, or none: state the repeated dims by broadcast<\"Q,QK->QK\">(x, y)");
  if constexpr (fits) return run_eager<Model, spec<>>(operation, x...);
}
/// The same for complete tensors.
template <auto Model, class... T, class... Specs>
auto run_complete_elementwise(std::string_view operation, const tensor<T, Specs>&... x) {
  require_complete<tensor<T, Specs>...>();
  return run_elementwise<Model>(operation, x...);
}
/// The same if one of two tensors may be a number.
template <auto Model, class A, class B>
auto run_with_numbers(std::string_view operation, const A& a, const B& b) {
  if constexpr (std::is_arithmetic_v<A>)
    return run_with_numbers<Model>(operation, scalar_on<typename B::value_type>(operation, b.cluster(), a), b);
  else if constexpr (std::is_arithmetic_v<B>)
    return run_with_numbers<Model>(operation, a, scalar_on<typename A::value_type>(operation, a.cluster(), b));
  else return run_complete_elementwise<Model>(operation, a, b);
}
}  // namespace detail

/// map<f>(x, ...)[i] = f(x[i], ...) on tensors. `broadcast` repeats operands.
/// Shapes: operands have equal extents, or no dims: a scalar matches anything.
/// Communicates: nothing if the operands have one sharding.
/// Compile time: ranks; that operands are complete.
/// Throws: `gshard::error` if operands differ in an extent.
/// @see core/trace/map.hpp
template <auto F, class... T, class... Specs>
  requires(sizeof...(T) > 0)
auto map(const tensor<T, Specs>&... x) {
  return detail::run_complete_elementwise<detail::map_model<F>>("map", x...);
}

/// map(f, x, ...): the same, with the function as an argument.
template <class F, class... T, class... Specs>
  requires(std::is_empty_v<F> && sizeof...(T) > 0)
auto map(F, const tensor<T, Specs>&... x) {
  return map<F{}>(x...);
}

/// a + b, a - b, a * b, a / b and -a, elementwise on tensors of one element type. One of two operands may be a number. If both operands of
/// a + b are partial sums over the same axes, so is the result.
/// Shapes: operands match as in map.
/// Communicates: nothing if the operands have one sharding.
/// Compile time: ranks; that operands are complete, except for a + b of two partial sums; that integers are combined with integers.
/// Throws: `gshard::error` if operands differ in an extent, or a number is beyond the integer type.
/// @see map
template <class A, class B>
  requires(detail::combined<A, B>)
auto operator+(const A& a, const B& b) {
  if constexpr (distributed_tensor<A> && distributed_tensor<B>) return detail::run_elementwise<detail::add_model>("add", a, b);
  else return detail::run_with_numbers<detail::add_model>("add", a, b);
}
template <class A, class B>
  requires(detail::combined<A, B>)
auto operator-(const A& a, const B& b) {
  return detail::run_with_numbers<detail::subtract_model>("subtract", a, b);
}
template <class A, class B>
  requires(detail::combined<A, B>)
auto operator*(const A& a, const B& b) {
  return detail::run_with_numbers<detail::multiply_model>("multiply", a, b);
}
template <class A, class B>
  requires(detail::combined<A, B>)
auto operator/(const A& a, const B& b) {
  return detail::run_with_numbers<detail::divide_model>("divide", a, b);
}
template <class T, class Spec>
auto operator-(const tensor<T, Spec>& a) {
  return detail::run_complete_elementwise<detail::negate_model>("negate", a);
}

/// relu(x) = max(x, 0) on tensors. NaN stays NaN.
/// Shapes: any -> the same.
/// Communicates: nothing.
/// Compile time: a real element type; that x is complete.
/// Throws: nothing.
/// @see core/trace/map.hpp
template <class T, class Spec>
auto relu(const tensor<T, Spec>& x) {
  return detail::run_complete_elementwise<detail::relu_model>("relu", x);
}
/// cast<double>(x) on tensors: the same numbers with another element type.
/// Shapes: any -> the same.
/// Communicates: nothing.
/// Compile time: that no complex number is cast to another kind of number; that x is complete.
/// Throws: nothing.
/// @see core/trace/map.hpp
template <class To, class T, class Spec>
auto cast(const tensor<T, Spec>& x) {
  return detail::run_complete_elementwise<detail::cast_model<To>>("cast", x);
}

/// conj(z) on tensors: the complex conjugate. An einsum with conjugation is einsum<"NI,NJ->IJ">(conj(x), y).
/// Shapes: any -> the same.
/// Communicates: nothing.
/// Compile time: a complex element type; that z is complete.
/// Throws: nothing.
/// @see core/trace/complex.hpp
template <class T, class Spec>
  requires(detail::is_complex_number<T>)
auto conj(const tensor<T, Spec>& z) {
  return detail::run_complete_elementwise<detail::conj_model>("conj", z);
}
/// real(z) on tensors: the real part.
/// Shapes: any -> the same.
/// Communicates: nothing.
/// Compile time: a complex element type; that z is complete.
/// Throws: nothing.
/// @see imag, complex
template <class T, class Spec>
  requires(detail::is_complex_number<T>)
auto real(const tensor<T, Spec>& z) {
  return detail::run_complete_elementwise<detail::real_model>("real", z);
}
/// imag(z) on tensors: the imaginary part.
/// Shapes: any -> the same.
/// Communicates: nothing.
/// Compile time: a complex element type; that z is complete.
/// Throws: nothing.
/// @see real, complex
template <class T, class Spec>
  requires(detail::is_complex_number<T>)
auto imag(const tensor<T, Spec>& z) {
  return detail::run_complete_elementwise<detail::imag_model>("imag", z);
}
/// complex(x, y) = x + iy on tensors.
/// Shapes: operands match as in map.
/// Communicates: nothing if the operands have one sharding.
/// Compile time: ranks; one real element type; that operands are complete.
/// Throws: `gshard::error` if operands differ in an extent.
/// @see real, imag
template <class T, class X, class Y>
auto complex(const tensor<T, X>& x, const tensor<T, Y>& y) {
  return detail::run_complete_elementwise<detail::complex_model>("complex", x, y);
}

}}  // namespace gshard::v0

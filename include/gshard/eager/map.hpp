// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Elementwise functions on tensors outside of programs: map, arithmetic (also with numbers), relu, cast and complex numbers.

#include <gshard/core/trace/complex.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/eager/tensor_verb.hpp>
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
template <class To>
inline constexpr auto cast_model = [](auto&, auto a) { return cast<To>(a); };
inline constexpr auto complex_model = [](auto&, auto x, auto y) { return complex(x, y); };

/// Two tensors, or a tensor and a number.
template <class A, class B>
concept combined = (distributed_tensor<A> && (distributed_tensor<B> || std::is_arithmetic_v<B>)) ||
                   (std::is_arithmetic_v<A> && distributed_tensor<B>);

/// An elementwise operation on tensors. Their dims have no names, so they match by position: every operand has all dims or none.
template <auto Model, class... T, class... Specs>
auto run_elementwise(std::string_view operation, const tensor<T, Specs>&... x) {
  constexpr int largest = std::max({Specs::rank...});
  constexpr bool fits = ((Specs::rank == largest || Specs::rank == 0) && ...);
  static_assert(holds<fits, actual_type<Specs>...>,
                "gshard: elementwise operands have equally many dims, or none: state the repeated dims by broadcast<\"Q,QK->QK\">(x, y)");
  if constexpr (fits) return run_eager<Model, spec<>>(operation, x...);
  else return refused_output();
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

// relu(x), and parts of complex numbers. An einsum with conjugation is einsum<"NI,NJ->IJ">(conj(x), y).
// @see core/trace/map.hpp, core/trace/complex.hpp
namespace detail {
struct a_complex_tensor {};
template <distributed_tensor G>
inline constexpr bool takes<a_complex_tensor, G> = is_complex_number<typename G::value_type>;
using complex_tensor = call<1, a_complex_tensor>;
}  // namespace detail
GSHARD_ON_TENSORS(relu, 0, 0, one_tensor, by_position, "relu(x) takes one gshard::tensor")
GSHARD_ON_TENSORS(conj, 0, 0, complex_tensor, by_position, "conj(z) takes one gshard::tensor of complex numbers")
GSHARD_ON_TENSORS(real, 0, 0, complex_tensor, by_position, "real(z) takes one gshard::tensor of complex numbers")
GSHARD_ON_TENSORS(imag, 0, 0, complex_tensor, by_position, "imag(z) takes one gshard::tensor of complex numbers")

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

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Elementwise functions (map) and addition on tensors outside of programs.

#include <gshard/op/eager.hpp>
#include <gshard/trace/complex.hpp>
#include <gshard/trace/map.hpp>

#include <algorithm>
#include <string_view>
#include <type_traits>

namespace gshard { inline namespace v0 {

namespace detail {
template <auto F>
inline constexpr auto map_model = [](auto&, auto... x) { return map<F>(x...); };
inline constexpr auto add_model = [](auto&, auto a, auto b) { return a + b; };
inline constexpr auto conj_model = [](auto&, auto z) { return conj(z); };

/// An elementwise operation on tensors. Their dims have no names, so they match by position: every operand has all dims or none.
template <auto Model, class... T, class... Specs>
auto run_elementwise(std::string_view operation, const tensor<T, Specs>&... x) {
  constexpr int largest = std::max({Specs::rank...});
  constexpr bool fits = ((Specs::rank == largest || Specs::rank == 0) && ...);
  static_assert(holds<fits, actual_type<Specs>...>,
                "gshard: elementwise operands have equally many dims, or none: state the repeated dims by broadcast<\"Q,QK->QK\">(x, y)");
  if constexpr (fits) return run_eager<Model, spec<>, letters_of_factors<counting(Specs::rank)>()...>(operation, x...);
}
}  // namespace detail

/// map<f>(x, ...)[i] = f(x[i], ...) on tensors. `broadcast` repeats operands.
/// Shapes: operands have equal extents, or no dims: a scalar matches anything.
/// Communicates: nothing if the operands have one sharding.
/// Compile time: ranks; that operands are complete.
/// Throws: `gshard::error` if operands differ in an extent.
/// @see trace/map.hpp
template <auto F, class... T, class... Specs>
  requires(sizeof...(T) > 0)
auto map(const tensor<T, Specs>&... x) {
  static_assert(holds<detail::all_complete<tensor<T, Specs>...>, actual_type<Specs>...>,
                "gshard: a partial sum is used as a complete tensor; reshard it first");
  return detail::run_elementwise<detail::map_model<F>>("map", x...);
}

/// map(f, x, ...): the same, with the function as an argument.
template <class F, class... T, class... Specs>
  requires(std::is_empty_v<F> && sizeof...(T) > 0)
auto map(F, const tensor<T, Specs>&... x) {
  return map<F{}>(x...);
}

/// a + b on tensors. Operands match as those of map. Equal partial sums stay partial.
template <class T, class A, class B>
auto operator+(const tensor<T, A>& a, const tensor<T, B>& b) {
  return detail::run_elementwise<detail::add_model>("add", a, b);
}

/// conj(z) on tensors: the complex conjugate. An einsum with conjugation is einsum<"NI,NJ->IJ">(conj(x), y).
/// Shapes: any -> the same.
/// Communicates: nothing.
/// Compile time: a complex element type; that z is complete.
/// Throws: nothing.
/// @see trace/complex.hpp
template <class T, class Spec>
  requires(detail::is_complex_number<T>)
auto conj(const tensor<T, Spec>& z) {
  static_assert(holds<detail::all_complete<tensor<T, Spec>>, actual_type<Spec>>,
                "gshard: a partial sum is used as a complete tensor; reshard it first");
  return detail::run_elementwise<detail::conj_model>("conj", z);
}

}}  // namespace gshard::v0

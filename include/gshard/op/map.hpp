// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/op/eager.hpp>
#include <gshard/trace/map.hpp>

#include <algorithm>

namespace gshard { inline namespace v0 {

namespace detail {
template <auto F>
inline constexpr auto map_model = [](auto&, auto... x) { return map<F>(x...); };
inline constexpr auto add_model = [](auto&, auto a, auto b) { return a + b; };

/// The last `Rank` of `Largest` letters: dims are lined up from the last, as in numpy.
template <int Rank, int Largest>
inline constexpr auto last_letters = letters_of_factors<counting(Rank, Largest - Rank)>();
}  // namespace detail

/// map<f>(x, ...)[i] = f(x[i], ...) on tensors; operands of lower rank are broadcast, dims lined up from the last.
template <auto F, class... T, class... Specs>
  requires(sizeof...(T) > 0)
auto map(const tensor<T, Specs>&... x) {
  static_assert(holds<detail::all_complete<tensor<T, Specs>...>, actual_type<Specs>...>,
                "gshard: a pending sum (partial) is used as a complete tensor; reshard it first");
  constexpr int largest = std::max({Specs::rank...});
  return detail::run_eager<detail::map_model<F>, spec<>, detail::last_letters<Specs::rank, largest>...>("map", x...);
}

/// a + b on tensors. Equal pending sums stay pending.
template <class T, class A, class B>
auto operator+(const tensor<T, A>& a, const tensor<T, B>& b) {
  constexpr int largest = std::max(A::rank, B::rank);
  return detail::run_eager<detail::add_model, spec<>, detail::last_letters<A::rank, largest>,
                           detail::last_letters<B::rank, largest>>("add", a, b);
}

}}  // namespace gshard::v0

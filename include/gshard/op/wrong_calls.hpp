// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Error messages for wrong calls of the verbs on tensors outside of programs. @see trace/wrong_math.hpp

#include <gshard/exec/parameters.hpp>
#include <gshard/op/compare.hpp>
#include <gshard/op/evaluate.hpp>
#include <gshard/op/reshard.hpp>
#include <gshard/tensor/tensor.hpp>
#include <gshard/trace/wrong_calls.hpp>
#include <gshard/trace/wrong_math.hpp>

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gshard { inline namespace v0 {

template <class To = void, class... Given>
  requires(!(detail::is_spec<To> && sizeof...(Given) == 1 && (distributed_tensor<Given> && ...)))
auto reshard(const Given&...) {
  static_assert(detail::accepts<Given...>,
                "gshard: reshard<P<\"data\", none>>(t) takes a partition spec and one gshard::tensor");
  return detail::refused_tensor();
}
template <class... Given>
  requires(!(sizeof...(Given) == 1 && (distributed_tensor<Given> && ...)))
auto to_global(const Given&...) {
  static_assert(detail::accepts<Given...>,
                "gshard: to_global(t) takes one gshard::tensor, to_global<float>(store, name) a parameter store");
  return std::vector<float>();
}
template <class T, class... Given>
  requires(!detail::call<2, parameter_store, std::string_view>::fits<Given...>)
auto to_global(const Given&...) {
  static_assert(detail::accepts<T, Given...>,
                "gshard: to_global(t) takes one gshard::tensor, to_global<float>(store, name) a parameter store");
  return std::vector<T>();
}
template <int From, int To = From, class... Given>
  requires(!(sizeof...(Given) == 1 && (distributed_tensor<Given> && ...)))
auto all_to_all(const Given&...) {
  static_assert(detail::accepts<Given...>, "gshard: all_to_all<0, 1>(t) takes two dims and one gshard::tensor");
  return detail::refused_tensor();
}
template <class T = void, class Spec = void, class... Given>
  requires(std::is_void_v<T> || !detail::is_spec<Spec> || sizeof...(Given) < 2)
auto from_global(const Given&...) {
  static_assert(detail::accepts<Given...>,
                "gshard: from_global<float, P<\"data\", none>>(cluster, {extents}, whole) takes an element type and a spec");
  return detail::refused_tensor();
}
template <class T = void, class Spec = void, class Cluster, class... Given>
  requires(std::is_void_v<T> || !detail::is_spec<Spec>)
auto from_global(const Cluster&, std::initializer_list<std::int64_t>, const Given&...) {
  static_assert(detail::accepts<Cluster, Given...>,
                "gshard: from_global<float, P<\"data\", none>>(cluster, {extents}, whole) takes an element type and a spec");
  return detail::refused_tensor();
}

namespace detail {
template <class A, class B>
concept with_distributed = (distributed_tensor<A> || distributed_tensor<B>) && !with_tensor<A, B>;
/// True if the arguments are not `Count` tensors outside of programs, or more than none if Count is 0.
template <int Count, class... Given>
concept not_tensors = !(... && distributed_tensor<Given>) || (Count == 0 ? sizeof...(Given) == 0 : int(sizeof...(Given)) != Count);
/// True for numbers as template arguments of a verb, and something else than `Count` tensors as its arguments.
template <int Count, int Numbers, class... Given>
concept wrong_with_numbers = (Numbers > 0) && not_tensors<Count, Given...>;
template <class... Given>
inline constexpr bool evaluates = false;
template <class F, class... Given>
inline constexpr bool evaluates<F, Given...> = function_of_symbols<F> && (distributed_tensor<Given> && ...);
}  // namespace detail

// Arithmetic.
template <class A, class B>
  requires(detail::with_distributed<A, B> && !detail::combined<A, B>)
auto operator+(const A&, const B&) {
  static_assert(detail::accepts<A, B>, "gshard: a + b on tensors outside of programs takes two tensors, or a tensor and a number");
  return detail::refused_tensor();
}
template <class A, class B>
  requires(detail::with_distributed<A, B> && !detail::combined<A, B>)
auto operator-(const A&, const B&) {
  static_assert(detail::accepts<A, B>, "gshard: a - b on tensors outside of programs takes two tensors, or a tensor and a number");
  return detail::refused_tensor();
}
template <class A, class B>
  requires(detail::with_distributed<A, B> && !detail::combined<A, B>)
auto operator*(const A&, const B&) {
  static_assert(detail::accepts<A, B>, "gshard: a * b on tensors outside of programs takes two tensors, or a tensor and a number");
  return detail::refused_tensor();
}
template <class A, class B>
  requires(detail::with_distributed<A, B> && !detail::combined<A, B>)
auto operator/(const A&, const B&) {
  static_assert(detail::accepts<A, B>, "gshard: a / b on tensors outside of programs takes two tensors, or a tensor and a number");
  return detail::refused_tensor();
}
template <class A, class B>
  requires(detail::with_distributed<A, B>)
auto operator==(const A&, const B&) {
  static_assert(detail::accepts<A, B>, "gshard: tensors outside of programs are compared by equal(a, b)");
  return detail::refused_tensor();
}
template <class A, class B>
  requires(detail::with_distributed<A, B>)
auto operator!=(const A&, const B&) {
  static_assert(detail::accepts<A, B>, "gshard: tensors outside of programs are compared by equal(a, b)");
  return detail::refused_tensor();
}

// Verbs that take numbers as template arguments: wrong tensors, and numbers among the arguments. The sentences about other wrong calls are
// those of trace/wrong_calls.hpp.
template <int... Numbers, class... Given>
  requires(detail::wrong_with_numbers<1, sizeof...(Numbers), Given...>)
auto cumsum(const Given&...) {
  static_assert(detail::accepts<Given...>,
                "gshard: outside of programs, cumsum<1>(x) takes a dim as template argument, and one gshard::tensor");
  return detail::refused_tensor();
}
template <class T, class Spec, class... Given>
  requires(detail::not_tensors<1, tensor<T, Spec>, Given...>)
auto cumsum(const tensor<T, Spec>&, const Given&...) {
  static_assert(detail::accepts<Given...>,
                "gshard: outside of programs, cumsum<1>(x) takes a dim as template argument, and one gshard::tensor");
  return detail::refused_tensor();
}
template <int... Numbers, class... Given>
  requires(detail::wrong_with_numbers<1, sizeof...(Numbers), Given...>)
auto sort(const Given&...) {
  static_assert(detail::accepts<Given...>,
                "gshard: outside of programs, sort<1>(x) takes a dim as template argument, and one gshard::tensor");
  return detail::refused_tensor();
}
template <class T, class Spec, class... Given>
  requires(detail::not_tensors<1, tensor<T, Spec>, Given...>)
auto sort(const tensor<T, Spec>&, const Given&...) {
  static_assert(detail::accepts<Given...>,
                "gshard: outside of programs, sort<1>(x) takes a dim as template argument, and one gshard::tensor");
  return detail::refused_tensor();
}
template <int... Numbers, class... Given>
  requires(detail::wrong_with_numbers<1, sizeof...(Numbers), Given...>)
auto top_k(const Given&...) {
  static_assert(detail::accepts<Given...>,
                "gshard: outside of programs, top_k<3, 1>(x) takes a count and a dim as template arguments, and one gshard::tensor");
  return detail::refused_tensor();
}
template <class T, class Spec, class... Given>
  requires(detail::not_tensors<1, tensor<T, Spec>, Given...>)
auto top_k(const tensor<T, Spec>&, const Given&...) {
  static_assert(detail::accepts<Given...>,
                "gshard: outside of programs, top_k<3, 1>(x) takes a count and a dim as template arguments, and one gshard::tensor");
  return detail::refused_tensor();
}
template <int... Numbers, class... Given>
  requires(detail::wrong_with_numbers<2, sizeof...(Numbers), Given...>)
auto gather(const Given&...) {
  static_assert(detail::accepts<Given...>,
                "gshard: outside of programs, gather<1>(table, ids) takes a dim as template argument, and two gshard::tensors");
  return detail::refused_tensor();
}
template <class T, class Spec, class... Given>
  requires(detail::not_tensors<2, tensor<T, Spec>, Given...>)
auto gather(const tensor<T, Spec>&, const Given&...) {
  static_assert(detail::accepts<Given...>,
                "gshard: outside of programs, gather<1>(table, ids) takes a dim as template argument, and two gshard::tensors");
  return detail::refused_tensor();
}
template <int... Numbers, class... Given>
  requires(detail::wrong_with_numbers<3, sizeof...(Numbers), Given...>)
auto scatter_add(const Given&...) {
  static_assert(detail::accepts<Given...>,
                "gshard: outside of programs, scatter_add<1>(x, ids, updates) takes a dim as template argument, and three gshard::tensors");
  return detail::refused_tensor();
}
template <class T, class Spec, class... Given>
  requires(detail::not_tensors<3, tensor<T, Spec>, Given...>)
auto scatter_add(const tensor<T, Spec>&, const Given&...) {
  static_assert(detail::accepts<Given...>,
                "gshard: outside of programs, scatter_add<1>(x, ids, updates) takes a dim as template argument, and three gshard::tensors");
  return detail::refused_tensor();
}
template <int... Numbers, class... Given>
  requires(detail::wrong_with_numbers<1, sizeof...(Numbers), Given...>)
auto slice(const Given&...) {
  static_assert(detail::accepts<Given...>,
                "gshard: outside of programs, slice<1, 0, 8>(x) takes a dim, start and stop as template arguments, and one gshard::tensor");
  return detail::refused_tensor();
}
template <class T, class Spec, class... Given>
  requires(detail::not_tensors<1, tensor<T, Spec>, Given...>)
auto slice(const tensor<T, Spec>&, const Given&...) {
  static_assert(detail::accepts<Given...>,
                "gshard: outside of programs, slice<1, 0, 8>(x) takes a dim, start and stop as template arguments, and one gshard::tensor");
  return detail::refused_tensor();
}
template <int... Numbers, class... Given>
  requires(detail::wrong_with_numbers<1, sizeof...(Numbers), Given...>)
auto pad(const Given&...) {
  static_assert(detail::accepts<Given...>,
                "gshard: outside of programs, pad<1, 0, 8>(x) takes a dim, low and high as template arguments, and one gshard::tensor");
  return detail::refused_tensor();
}
template <class T, class Spec, class... Given>
  requires(detail::not_tensors<1, tensor<T, Spec>, Given...>)
auto pad(const tensor<T, Spec>&, const Given&...) {
  static_assert(detail::accepts<Given...>,
                "gshard: outside of programs, pad<1, 0, 8>(x) takes a dim, low and high as template arguments, and one gshard::tensor");
  return detail::refused_tensor();
}
template <int... Numbers, class... Given>
  requires(detail::wrong_with_numbers<1, sizeof...(Numbers), Given...>)
auto reverse(const Given&...) {
  static_assert(detail::accepts<Given...>,
                "gshard: outside of programs, reverse<1>(x) takes a dim as template argument, and one gshard::tensor");
  return detail::refused_tensor();
}
template <class T, class Spec, class... Given>
  requires(detail::not_tensors<1, tensor<T, Spec>, Given...>)
auto reverse(const tensor<T, Spec>&, const Given&...) {
  static_assert(detail::accepts<Given...>,
                "gshard: outside of programs, reverse<1>(x) takes a dim as template argument, and one gshard::tensor");
  return detail::refused_tensor();
}
template <int... Numbers, class... Given>
  requires(detail::wrong_with_numbers<1, sizeof...(Numbers), Given...>)
auto roll(const Given&...) {
  static_assert(detail::accepts<Given...>,
                "gshard: outside of programs, roll<1, 3>(x) takes a dim and a shift as template arguments, and one gshard::tensor");
  return detail::refused_tensor();
}
template <class T, class Spec, class... Given>
  requires(detail::not_tensors<1, tensor<T, Spec>, Given...>)
auto roll(const tensor<T, Spec>&, const Given&...) {
  static_assert(detail::accepts<Given...>,
                "gshard: outside of programs, roll<1, 3>(x) takes a dim and a shift as template arguments, and one gshard::tensor");
  return detail::refused_tensor();
}
template <int... Numbers, class... Given>
  requires(detail::wrong_with_numbers<0, sizeof...(Numbers), Given...>)
auto concat(const Given&...) {
  static_assert(detail::accepts<Given...>,
                "gshard: outside of programs, concat<1>(a, b, ...) takes a dim as template argument, and gshard::tensors");
  return detail::refused_tensor();
}
template <class T, class Spec, class... Given>
  requires(detail::not_tensors<0, tensor<T, Spec>, Given...>)
auto concat(const tensor<T, Spec>&, const Given&...) {
  static_assert(detail::accepts<Given...>,
                "gshard: outside of programs, concat<1>(a, b, ...) takes a dim as template argument, and gshard::tensors");
  return detail::refused_tensor();
}
template <fixed_string... Letters, class... Given>
  requires(!(sizeof...(Given) > 1 && detail::evaluates<Given...>))
auto evaluate(const Given&...) {
  static_assert(detail::accepts<Given...>,
                "gshard: evaluate<\"AB\", \"BC\">(f, x, y) takes a function without captures and gshard::tensors");
  return detail::refused_tensor();
}

}}  // namespace gshard::v0

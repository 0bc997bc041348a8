// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Error messages for wrong calls of the verbs on tensors outside of programs. @see trace/wrong_math.hpp

#include <gshard/exec/parameters.hpp>
#include <gshard/op/compare.hpp>
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
template <class A, class B>
inline constexpr bool adds = false;
template <class T, class A, class B>
inline constexpr bool adds<tensor<T, A>, tensor<T, B>> = true;
}  // namespace detail

template <class A, class B>
  requires(detail::with_distributed<A, B> && !detail::adds<A, B>)
auto operator+(const A&, const B&) {
  static_assert(detail::accepts<A, B>, "gshard: tensors outside of programs have a + b of one element type, comparisons, and map<f>(a, b)");
  return detail::refused_tensor();
}
template <class A, class B>
  requires(detail::with_distributed<A, B>)
auto operator-(const A&, const B&) {
  static_assert(detail::accepts<A, B>, "gshard: tensors outside of programs have a + b of one element type, comparisons, and map<f>(a, b)");
  return detail::refused_tensor();
}
template <class A, class B>
  requires(detail::with_distributed<A, B>)
auto operator*(const A&, const B&) {
  static_assert(detail::accepts<A, B>, "gshard: tensors outside of programs have a + b of one element type, comparisons, and map<f>(a, b)");
  return detail::refused_tensor();
}
template <class A, class B>
  requires(detail::with_distributed<A, B>)
auto operator/(const A&, const B&) {
  static_assert(detail::accepts<A, B>, "gshard: tensors outside of programs have a + b of one element type, comparisons, and map<f>(a, b)");
  return detail::refused_tensor();
}
template <class A>
  requires(distributed_tensor<A>)
auto operator-(const A&) {
  static_assert(detail::accepts<A>, "gshard: tensors outside of programs have a + b of one element type, comparisons, and map<f>(a, b)");
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

}}  // namespace gshard::v0

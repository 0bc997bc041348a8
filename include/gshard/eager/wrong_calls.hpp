// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Error messages for wrong calls of the verbs on tensors outside of programs. @see core/trace/call.hpp

#include <gshard/exec/program/parameters.hpp>
#include <gshard/eager/compare.hpp>
#include <gshard/eager/evaluate.hpp>
#include <gshard/eager/new_dims.hpp>
#include <gshard/eager/reshard.hpp>
#include <gshard/eager/tensor_verb.hpp>
#include <gshard/exec/tensor/tensor.hpp>
#include <gshard/core/trace/refused_operators.hpp>

#include <concepts>
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
using tensor_and_count = call<2, a_tensor, int>;
using tensor_and_extents = call<3, a_tensor, int, int>;
template <class T, class Spec, class... Given>
concept makes_random =
    !std::is_void_v<T> && is_spec<Spec> && call<3, any_cluster, std::vector<std::int64_t>, std::uint64_t>::fits<Given...>;
/// True for verbs on a cluster. Their first argument, an element type or a spec distinguishes them from verbs of programs.
template <class T, class First>
concept on_cluster = !std::is_void_v<T> || std::derived_from<First, any_cluster>;
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

// Masks.
#define GSHARD_TAKES_MASKS(verb)                                                                                                     \
  template <class T, class Spec, class... Given>                                                                                     \
  auto verb(const tensor<T, Spec>&, const Given&...) {                                                                               \
    static_assert(detail::accepts<tensor<T, Spec>, Given...>,                                                                        \
                  "gshard: outside of programs, " #verb "(a, b) takes two gshard::tensors of bool: cast<bool>(x > y)");              \
    return detail::refused_tensor();                                                                                                 \
  }
GSHARD_TAKES_MASKS(logical_and)
GSHARD_TAKES_MASKS(logical_or)
#undef GSHARD_TAKES_MASKS
template <class T, class Spec>
auto operator!(const tensor<T, Spec>&) {
  static_assert(detail::accepts<tensor<T, Spec>>, "gshard: masks outside of programs are negated by logical_not(mask)");
  return detail::refused_tensor();
}

// Verbs that take extents.
template <int... Dim, class T, class Spec, class... Given>
  requires(sizeof...(Dim) != 1 || !detail::tensor_and_extents::fits<tensor<T, Spec>, Given...>)
auto split_dim(const tensor<T, Spec>&, const Given&...) {
  static_assert(detail::accepts<tensor<T, Spec>, Given...>,
                "gshard: outside of programs, split_dim<1>(x, 4, 8) takes a dim as template argument, one gshard::tensor and two extents");
  return detail::refused_tensor();
}
template <class T = float, class I, class Spec, class... Given>
  requires(!detail::tensor_and_count::fits<tensor<I, Spec>, Given...>)
auto one_hot(const tensor<I, Spec>&, const Given&...) {
  static_assert(detail::accepts<tensor<I, Spec>, Given...>,
                "gshard: outside of programs, one_hot(ids, 8) takes one gshard::tensor and the number of classes");
  return detail::refused_tensor();
}

// Tensors made from extents.
#define GSHARD_MAKES_RANDOM(verb)                                                                                                    \
  template <class T = void, class Spec = void, class First, class... Given>                                                          \
    requires(detail::on_cluster<T, First> && !detail::makes_random<T, Spec, First, Given...>)                                        \
  auto verb(const First&, const Given&...) {                                                                                         \
    static_assert(detail::accepts<First, Given...>,                                                                                  \
                  "gshard: outside of programs, " #verb "<float, P<\"data\", none>>(cluster, {extents}, seed) takes an element type "    \
                  "and a spec, a cluster, extents and a seed");                                                                      \
    return detail::refused_tensor();                                                                                                 \
  }                                                                                                                                  \
  template <class T = void, class Spec = void, class First, class... Given>                                                          \
    requires(!detail::makes_random<T, Spec, First, std::vector<std::int64_t>, Given...>)                                             \
  auto verb(const First& on, std::initializer_list<std::int64_t>, const Given&... given) {                                           \
    return verb<T, Spec>(on, std::vector<std::int64_t>(), given...);                                                                 \
  }
GSHARD_MAKES_RANDOM(uniform)
GSHARD_MAKES_RANDOM(normal)
#undef GSHARD_MAKES_RANDOM
template <class Spec = void, int... Along, class First, class... Given>
  requires(detail::on_cluster<Spec, First> &&
           !(detail::is_spec<Spec> && detail::call<2, any_cluster, std::vector<std::int64_t>>::fits<First, Given...>))
auto iota(const First&, const Given&...) {
  static_assert(detail::accepts<First, Given...>,
                "gshard: outside of programs, iota<P<\"data\", none>, 1>(cluster, {extents}) takes a spec and maybe a dim, a cluster and "
                "extents");
  return detail::refused_tensor();
}
template <class Spec = void, int... Along, class First, class... Given>
  requires(!detail::is_spec<Spec> || sizeof...(Given) > 0)
auto iota(const First& on, std::initializer_list<std::int64_t>, const Given&... given) {
  return iota<Spec>(on, std::vector<std::int64_t>(), given...);
}
template <fixed_string... Letters, class... Given>
  requires(!(sizeof...(Given) > 1 && detail::evaluates<Given...>))
auto evaluate(const Given&...) {
  static_assert(detail::accepts<Given...>,
                "gshard: evaluate<\"AB\", \"BC\">(f, x, y) takes a function without captures and gshard::tensors");
  return detail::refused_tensor();
}

}}  // namespace gshard::v0

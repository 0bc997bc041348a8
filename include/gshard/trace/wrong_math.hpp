// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Compile-time errors for wrong calls of sums, reductions and elementwise verbs: one message per verb.
//
// Each overload is chosen only if its constraint finds that the arguments do not fit. Without these overloads, compilers list all
// candidates. Correct calls instantiate nothing here. @see trace/wrong_calls.hpp for the other verbs

#include <gshard/base/fixed_string.hpp>
#include <gshard/trace/call.hpp>
#include <gshard/trace/convolution.hpp>

#include <string_view>
#include <type_traits>

namespace gshard { inline namespace v0 {

namespace detail {
template <class... Given>
concept with_tensor = (std::is_base_of_v<symbol, Given> || ...);
template <class... Given>
concept not_compared =
    !(call<2, symbol, symbol>::fits<Given...> || call<2, symbol, double>::fits<Given...> || call<2, double, symbol>::fits<Given...>);
/// True for map(f, t, ...) of tensors outside of programs.
template <class... Given>
inline constexpr bool maps_outside = false;
template <class F, class First, class... More>
inline constexpr bool maps_outside<F, First, More...> =
    takes<plain_function, F> && tensors_of_any_kind<1, 5>::template fits<First, More...>;
/// True unless the arguments are two numbers, as in max(v, 0).
template <class... Given>
concept not_two_numbers =
    !(call<2, a_number, a_number>::fits<Given...> || call<2, a_number, double>::fits<Given...> ||
      call<2, double, a_number>::fits<Given...>);
}  // namespace detail

// Einsums and reductions.
template <fixed_string Equation = "", class... Given>
  requires(detail::left_out<Equation> ? !detail::call<2, std::string_view, detail::list_of<symbol>>::fits<Given...>
                                      : !detail::tensors_of_any_kind<1, 16>::fits<Given...>)
constexpr auto einsum(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: einsum<\"GSM,ME->GSE\">(x, w, ...) takes an equation and one to 16 tensors of a program");
  return detail::refused(given...);
}
#define GSHARD_REDUCES(verb)                                                                                                      \
  template <fixed_string Equation = "", class... Given>                                                                           \
    requires(!detail::tensors<1>::fits<Given...> &&                                                                               \
             !(detail::left_out<Equation> && detail::call<2, std::string_view, symbol>::fits<Given...>))                          \
  constexpr auto verb(const Given&... given) {                                                                                    \
    static_assert(detail::accepts<Given...>, "gshard: " #verb "(x) and " #verb "<\"AB->A\">(x) take one tensor of a program");    \
    return detail::refused(given...);                                                                                             \
  }
GSHARD_REDUCES(sum)
GSHARD_REDUCES(mean)
GSHARD_REDUCES(reduce_sum)
GSHARD_REDUCES(reduce_mean)
GSHARD_REDUCES(reduce_max)
GSHARD_REDUCES(reduce_min)
GSHARD_REDUCES(reduce_prod)
#undef GSHARD_REDUCES
template <fixed_string Equation = "", class... Given>
  requires(!detail::call<2, symbol, reduction>::fits<Given...> &&
           !(detail::left_out<Equation> && detail::call<3, std::string_view, symbol, reduction>::fits<Given...>))
constexpr auto reduce(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: reduce<\"AB->A\">(x, reduction::max) takes one tensor of a program and a reduction");
  return detail::refused(given...);
}
template <fixed_string Equation = "", class... Given>
  requires(detail::left_out<Equation> ? !detail::call<2, std::string_view, symbol>::fits<Given...> : !detail::tensors<1>::fits<Given...>)
constexpr auto argmax(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: argmax<\"AB->A\">(x) takes an equation and one tensor of a program");
  return detail::refused(given...);
}
template <fixed_string Equation = "", class... Given>
  requires(detail::left_out<Equation> ? !detail::call<2, std::string_view, symbol>::fits<Given...> : !detail::tensors<1>::fits<Given...>)
constexpr auto argmin(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: argmin<\"AB->A\">(x) takes an equation and one tensor of a program");
  return detail::refused(given...);
}
template <fixed_string Equation = "", class... Given>
  requires(detail::left_out<Equation> ? !detail::call<2, std::string_view, symbol>::fits<Given...> : !detail::tensors<1>::fits<Given...>)
constexpr auto logsumexp(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: logsumexp<\"AB->A\">(x) takes an equation and one tensor of a program");
  return detail::refused(given...);
}
template <fixed_string Equation = "", class... Given>
  requires(detail::left_out<Equation> ? !detail::call<3, std::string_view, symbol, symbol, detail::list_of<conv_window>>::fits<Given...>
                                      : !detail::call<2, symbol, symbol, detail::list_of<conv_window>>::fits<Given...>)
constexpr auto conv(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: conv<\"BIXY,xyIO->BOXY\">(x, w, {{.stride = 2}}) takes an equation, two tensors of a program and windows");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<2, symbol, detail::list_of<pool_window>>::fits<Given...>)
constexpr auto sum_pool(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: sum_pool(x, {{dim, taps}, ...}) takes a tensor of a program and a list of windows");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<2, symbol, detail::list_of<pool_window>>::fits<Given...>)
constexpr auto mean_pool(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: mean_pool(x, {{dim, taps}, ...}) takes a tensor of a program and a list of windows");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<2, symbol, detail::list_of<pool_window>>::fits<Given...>)
constexpr auto max_pool(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: max_pool(x, {{dim, taps}, ...}) takes a tensor of a program and a list of windows");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<2, symbol, detail::list_of<pool_window>>::fits<Given...>)
constexpr auto min_pool(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: min_pool(x, {{dim, taps}, ...}) takes a tensor of a program and a list of windows");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::before_tensors<6, detail::function>::fits<Given...>)
constexpr auto full_precision(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: full_precision(f, x, ...) takes a function and the tensors of a program that it is called with");
  return detail::refused(given...);
}

// Elementwise verbs.
template <fixed_string Equation = "", class... Given>
  requires(detail::left_out<Equation> ? !detail::call<2, std::string_view, detail::list_of<symbol>>::fits<Given...>
                                      : !detail::tensors_of_any_kind<1, 6>::fits<Given...>)
constexpr auto broadcast(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: broadcast<\"Q,QK->QK\">(x, like, ...) takes an equation, a tensor and tensors that give extents");
  return detail::refused(given...);
}
template <auto F, class... Given>
  requires(!detail::tensors_of_any_kind<1, 5>::fits<Given...>)
constexpr auto map(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: map<f>(x, ...) and map(f, x, ...) take a function without captures and one to five tensors");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::before_tensors<5, detail::plain_function>::fits<Given...> && !detail::maps_outside<Given...>)
constexpr auto map(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: map<f>(x, ...) and map(f, x, ...) take a function without captures and one to five tensors");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::tensors<1>::fits<Given...>)
constexpr auto relu(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: relu(x) takes one tensor of a program");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::tensors<1>::fits<Given...>)
constexpr auto stop_gradient(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: stop_gradient(x) takes one tensor of a program");
  return detail::refused(given...);
}
template <fixed_string Letters = "", class... Given>
  requires(detail::left_out<Letters> || !detail::call<2, symbol, double>::fits<Given...>)
constexpr auto scale_by(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: scale_by<\"D\">(x, power) takes the letters of dims, a tensor of a program and a number");
  return detail::refused(given...);
}
template <class T = void, class... Given>
  requires(std::is_void_v<T> ? !detail::call<2, symbol, dtype>::fits<Given...> : !detail::tensors<1>::fits<Given...>)
constexpr auto cast(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: cast<double>(x) takes an element type and one tensor of a program");
  return detail::refused(given...);
}
template <class T = void, class... Given>
  requires(!detail::tensors<1>::fits<Given...>)
constexpr auto on_wire(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: on_wire<gs::bfloat16>(x) takes one tensor of a program");
  return detail::refused(given...);
}
template <class... Given>
  requires(detail::not_compared<Given...>)
constexpr auto less(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: less(a, b) takes two tensors of a program, or a tensor and a number");
  return detail::refused(given...);
}
template <class... Given>
  requires(detail::not_compared<Given...>)
constexpr auto equal(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: equal(a, b) takes two tensors of a program, or a tensor and a number");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<3, symbol, symbol, symbol>::fits<Given...> && !detail::call<3, symbol, symbol, double>::fits<Given...> &&
           !detail::call<3, symbol, double, symbol>::fits<Given...> && !detail::call<3, symbol, double, double>::fits<Given...>)
constexpr auto select(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: select(condition, a, b) takes three tensors of a program; a and b may be numbers");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<2, symbol, double>::fits<Given...>)
constexpr auto dropout(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: dropout(x, rate) takes a tensor of a program and a number");
  return detail::refused(given...);
}
template <class A, class B>
  requires(detail::with_tensor<A, B> && detail::not_compared<A, B>)
constexpr auto operator+(const A& a, const B& b) {
  static_assert(detail::accepts<A, B>, "gshard: a + b takes two tensors of a program, or a tensor and a number");
  return detail::refused(a, b);
}
template <class A, class B>
  requires(detail::with_tensor<A, B> && detail::not_compared<A, B>)
constexpr auto operator-(const A& a, const B& b) {
  static_assert(detail::accepts<A, B>, "gshard: a - b takes two tensors of a program, or a tensor and a number");
  return detail::refused(a, b);
}
template <class A, class B>
  requires(detail::with_tensor<A, B> && detail::not_compared<A, B>)
constexpr auto operator*(const A& a, const B& b) {
  static_assert(detail::accepts<A, B>, "gshard: a * b takes two tensors of a program, or a tensor and a number");
  return detail::refused(a, b);
}
template <class A, class B>
  requires(detail::with_tensor<A, B> && detail::not_compared<A, B>)
constexpr auto operator/(const A& a, const B& b) {
  static_assert(detail::accepts<A, B>, "gshard: a / b takes two tensors of a program, or a tensor and a number");
  return detail::refused(a, b);
}
template <class A, class B>
  requires(detail::with_tensor<A, B> && detail::not_compared<A, B>)
constexpr auto operator<(const A& a, const B& b) {
  static_assert(detail::accepts<A, B>, "gshard: a < b takes two tensors of a program, or a tensor and a number");
  return detail::refused(a, b);
}
template <class A, class B>
  requires(detail::with_tensor<A, B> && detail::not_compared<A, B>)
constexpr auto operator>(const A& a, const B& b) {
  static_assert(detail::accepts<A, B>, "gshard: a > b takes two tensors of a program, or a tensor and a number");
  return detail::refused(a, b);
}
template <class A, class B>
  requires(detail::with_tensor<A, B> && detail::not_compared<A, B>)
constexpr auto operator<=(const A& a, const B& b) {
  static_assert(detail::accepts<A, B>, "gshard: a <= b takes two tensors of a program, or a tensor and a number");
  return detail::refused(a, b);
}
template <class A, class B>
  requires(detail::with_tensor<A, B> && detail::not_compared<A, B>)
constexpr auto operator>=(const A& a, const B& b) {
  static_assert(detail::accepts<A, B>, "gshard: a >= b takes two tensors of a program, or a tensor and a number");
  return detail::refused(a, b);
}
template <class A, class B>
  requires(detail::with_tensor<A, B>)
constexpr auto operator==(const A& a, const B& b) {
  static_assert(detail::accepts<A, B>, "gshard: tensors of a program are compared by equal(a, b)");
  return detail::refused(a, b);
}
template <class A, class B>
  requires(detail::with_tensor<A, B>)
constexpr auto operator!=(const A& a, const B& b) {
  static_assert(detail::accepts<A, B>, "gshard: tensors of a program are compared by 1 - equal(a, b)");
  return detail::refused(a, b);
}
template <class A, class B>
  requires(detail::with_tensor<A, B>)
constexpr auto operator&&(const A& a, const B& b) {
  static_assert(detail::accepts<A, B>, "gshard: tensors of a program that are 0 or 1 are combined by a * b, and negated by 1 - a");
  return detail::refused(a, b);
}
template <class A, class B>
  requires(detail::with_tensor<A, B>)
constexpr auto operator||(const A& a, const B& b) {
  static_assert(detail::accepts<A, B>, "gshard: tensors of a program that are 0 or 1 are combined by a * b, and negated by 1 - a");
  return detail::refused(a, b);
}
template <class A>
  requires(detail::with_tensor<A>)
constexpr auto operator!(const A& a) {
  static_assert(detail::accepts<A>, "gshard: tensors of a program that are 0 or 1 are combined by a * b, and negated by 1 - a");
  return detail::refused(a);
}
template <class A, class B>
  requires(detail::with_tensor<A, B>)
constexpr auto operator+=(A& a, const B& b) {
  static_assert(detail::accepts<A, B>, "gshard: a tensor of a program is not changed: write a = a + b");
  return detail::refused(a, b);
}
template <class A, class B>
  requires(detail::with_tensor<A, B>)
constexpr auto operator-=(A& a, const B& b) {
  static_assert(detail::accepts<A, B>, "gshard: a tensor of a program is not changed: write a = a - b");
  return detail::refused(a, b);
}
template <class A, class B>
  requires(detail::with_tensor<A, B>)
constexpr auto operator*=(A& a, const B& b) {
  static_assert(detail::accepts<A, B>, "gshard: a tensor of a program is not changed: write a = a * b");
  return detail::refused(a, b);
}
template <class A, class B>
  requires(detail::with_tensor<A, B>)
constexpr auto operator/=(A& a, const B& b) {
  static_assert(detail::accepts<A, B>, "gshard: a tensor of a program is not changed: write a = a / b");
  return detail::refused(a, b);
}

// Scalar functions, for the function of map.
template <class... Given>
  requires(!detail::call<1, detail::a_number>::fits<Given...>)
constexpr auto exp(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: exp(v) takes a number, in the function of map: map<[](auto v) { return gshard::exp(v); }>(x)");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<1, detail::a_number>::fits<Given...>)
constexpr auto log(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: log(v) takes a number, in the function of map: map<[](auto v) { return gshard::log(v); }>(x)");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<1, detail::a_number>::fits<Given...>)
constexpr auto tanh(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: tanh(v) takes a number, in the function of map: map<[](auto v) { return gshard::tanh(v); }>(x)");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<1, detail::a_number>::fits<Given...>)
constexpr auto sqrt(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: sqrt(v) takes a number, in the function of map: map<[](auto v) { return gshard::sqrt(v); }>(x)");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<1, detail::a_number>::fits<Given...>)
constexpr auto abs(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: abs(v) takes a number, in the function of map: map<[](auto v) { return gshard::abs(v); }>(x)");
  return detail::refused(given...);
}
template <class... Given>
  requires(detail::not_two_numbers<Given...>)
constexpr auto max(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: max(v, w) takes two numbers, in the function of map: map<[](auto v, auto w) { return gshard::max(v, w); }>(x, y)");
  return detail::refused(given...);
}
template <class... Given>
  requires(detail::not_two_numbers<Given...>)
constexpr auto min(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: min(v, w) takes two numbers, in the function of map: map<[](auto v, auto w) { return gshard::min(v, w); }>(x, y)");
  return detail::refused(given...);
}

// Complex tensors and masks.
template <class... Given>
  requires(detail::with_tensor<Given...> && !detail::call<1, symbol>::fits<Given...>)
constexpr auto real(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: real(z) takes one tensor of a program");
  return detail::refused(given...);
}
template <class... Given>
  requires(detail::with_tensor<Given...> && !detail::call<1, symbol>::fits<Given...>)
constexpr auto imag(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: imag(z) takes one tensor of a program");
  return detail::refused(given...);
}
template <class... Given>
  requires(detail::with_tensor<Given...> && !detail::call<1, symbol>::fits<Given...>)
constexpr auto conj(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: conj(z) takes one tensor of a program");
  return detail::refused(given...);
}
template <class... Given>
  requires(detail::with_tensor<Given...> && !detail::call<2, symbol, symbol>::fits<Given...>)
constexpr auto complex(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: complex(x, y) takes two tensors of a program");
  return detail::refused(given...);
}
template <class... Given>
  requires(detail::with_tensor<Given...> && !detail::call<2, symbol, symbol>::fits<Given...>)
constexpr auto logical_and(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: logical_and(a, b) takes two tensors of a program");
  return detail::refused(given...);
}
template <class... Given>
  requires(detail::with_tensor<Given...> && !detail::call<2, symbol, symbol>::fits<Given...>)
constexpr auto logical_or(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: logical_or(a, b) takes two tensors of a program");
  return detail::refused(given...);
}
template <class... Given>
  requires(detail::with_tensor<Given...> && !detail::call<1, symbol>::fits<Given...>)
constexpr auto logical_not(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: logical_not(a) takes one tensor of a program");
  return detail::refused(given...);
}

}}  // namespace gshard::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Compile-time errors for operators and scalar functions that tensors of a program do not have: one sentence each.

#include <gshard/core/trace/call.hpp>

namespace gshard { inline namespace v0 {

namespace detail {
/// True if the arguments are two numbers, as in max(v, 0).
template <class... Given>
concept two_numbers = call<2, a_number, a_number>::fits<Given...> || call<2, a_number, double>::fits<Given...> ||
                      call<2, double, a_number>::fits<Given...>;
}  // namespace detail

#define GSHARD_REFUSED_OPERATOR(sign, takes_tensors, sentence)                        \
  template <class A, class B>                                                         \
    requires(detail::with_tensor<A, B> && !(takes_tensors && detail::compares<A, B>)) \
  constexpr auto operator sign(const A& a, const B& b) {                              \
    static_assert(detail::accepts<A, B>, "gshard: " sentence);                        \
    return detail::refused(a, b);                                                     \
  }
GSHARD_REFUSED_OPERATOR(+, true, "a + b takes two tensors of a program, or a tensor and a number")
GSHARD_REFUSED_OPERATOR(-, true, "a - b takes two tensors of a program, or a tensor and a number")
GSHARD_REFUSED_OPERATOR(*, true, "a * b takes two tensors of a program, or a tensor and a number")
GSHARD_REFUSED_OPERATOR(/, true, "a / b takes two tensors of a program, or a tensor and a number")
GSHARD_REFUSED_OPERATOR(<, true, "a < b takes two tensors of a program, or a tensor and a number")
GSHARD_REFUSED_OPERATOR(>, true, "a > b takes two tensors of a program, or a tensor and a number")
GSHARD_REFUSED_OPERATOR(<=, true, "a <= b takes two tensors of a program, or a tensor and a number")
GSHARD_REFUSED_OPERATOR(>=, true, "a >= b takes two tensors of a program, or a tensor and a number")
GSHARD_REFUSED_OPERATOR(==, false, "tensors of a program are compared by equal(a, b)")
GSHARD_REFUSED_OPERATOR(!=, false, "tensors of a program are compared by 1 - equal(a, b)")
GSHARD_REFUSED_OPERATOR(&&, false, "tensors of a program that are 0 or 1 are combined by a * b, and negated by 1 - a")
GSHARD_REFUSED_OPERATOR(||, false, "tensors of a program that are 0 or 1 are combined by a * b, and negated by 1 - a")
template <class A>
  requires(detail::with_tensor<A>)
constexpr auto operator!(const A& a) {
  static_assert(detail::accepts<A>, "gshard: tensors of a program that are 0 or 1 are combined by a * b, and negated by 1 - a");
  return detail::refused(a);
}
GSHARD_REFUSED_OPERATOR(+=, false, "a tensor of a program is not changed: write a = a + b")
GSHARD_REFUSED_OPERATOR(-=, false, "a tensor of a program is not changed: write a = a - b")
GSHARD_REFUSED_OPERATOR(*=, false, "a tensor of a program is not changed: write a = a * b")
GSHARD_REFUSED_OPERATOR(/=, false, "a tensor of a program is not changed: write a = a / b")
#undef GSHARD_REFUSED_OPERATOR

// Scalar functions, for the function of map.
GSHARD_TAKES(exp, (detail::call<1, detail::a_number>::fits<Given...>),
             "exp(v) takes a number, in the function of map: map<[](auto v) { return gshard::exp(v); }>(x)")
GSHARD_TAKES(log, (detail::call<1, detail::a_number>::fits<Given...>),
             "log(v) takes a number, in the function of map: map<[](auto v) { return gshard::log(v); }>(x)")
GSHARD_TAKES(tanh, (detail::call<1, detail::a_number>::fits<Given...>),
             "tanh(v) takes a number, in the function of map: map<[](auto v) { return gshard::tanh(v); }>(x)")
GSHARD_TAKES(sqrt, (detail::call<1, detail::a_number>::fits<Given...>),
             "sqrt(v) takes a number, in the function of map: map<[](auto v) { return gshard::sqrt(v); }>(x)")
GSHARD_TAKES(abs, (detail::call<1, detail::a_number>::fits<Given...>),
             "abs(v) takes a number, in the function of map: map<[](auto v) { return gshard::abs(v); }>(x)")
GSHARD_TAKES(max, (detail::two_numbers<Given...>),
             "max(v, w) takes two numbers, in the function of map: map<[](auto v, auto w) { return gshard::max(v, w); }>(x, y)")
GSHARD_TAKES(min, (detail::two_numbers<Given...>),
             "min(v, w) takes two numbers, in the function of map: map<[](auto v, auto w) { return gshard::min(v, w); }>(x, y)")

}}  // namespace gshard::v0

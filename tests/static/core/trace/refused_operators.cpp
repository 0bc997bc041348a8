// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/trace/refused_operators.hpp>

#include <gshard/plan.hpp>

#include <type_traits>

#include "../../tracing.hpp"

// Right calls are not refused as wrong ones (all of them: mustfail/wrong_math.cpp), and the result of a wrong call is passed on.
namespace gs = gshard;
using gs::builder, gs::symbol;
using gs::detail::is_refused, gs::detail::refused_tensor;
using tracing::input;

namespace {

template <class T>
constexpr bool is_made = std::is_same_v<T, symbol>;

static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB");
  static_assert(is_made<decltype(gs::einsum<"AB,AB->A">(x, x))> && is_made<decltype(gs::sum(x))> && is_made<decltype(gs::relu(x))>);
  static_assert(is_made<decltype(x + x)> && is_made<decltype(2 * x)> && is_made<decltype(x - 1)> && is_made<decltype(-x)>);
  static_assert(is_made<decltype(x < x)> && is_made<decltype(1 >= x)> && is_made<decltype(gs::select(x > 0, x, 0))>);
  static_assert(gs::max(1.0f, 0) == 1.0f && gs::select(true, gs::dual<float>(2, 1), 0).slope == 1);
  return !b.failed();
}));
static_assert(tracing::problem_of([](builder& b, auto&) {
                const symbol x = input(b, "AB");
                const refused_tensor none = gs::detail::refused(3.0);
                static_assert(is_refused<decltype(gs::relu(none))> && is_refused<decltype(none * 2)>);
                static_assert(is_refused<decltype(gs::einsum<"AB,AB->A">(x, none))> && is_refused<decltype(none == x)>);
                const symbol unknown = none;  // as an argument of a function of symbols
                if ((unknown + x).id < 0 && gs::relu(unknown).id < 0 && gs::sum(unknown).id < 0 && !b.failed()) (void)(x + unknown);
              }).what == gs::fault::refused_call);

}  // namespace

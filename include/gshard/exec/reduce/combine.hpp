// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The operations of reductions: sum, maximum, minimum and product of two elements.

#include <gshard/core/base/math.hpp>
#include <gshard/core/ir/arithmetic.hpp>
#include <gshard/core/ir/reduction.hpp>

#include <limits>

namespace gshard { inline namespace v0 { namespace detail {

// For numbers or SIMD vectors, like `larger` and `smaller`. All four propagate NaN in any order.
inline constexpr auto plus = [](const auto& a, const auto& b) { return a + b; };
inline constexpr auto times = [](const auto& a, const auto& b) { return a * b; };

/// The identities of max and min: the lowest and the highest T.
template <class T>
inline constexpr T lowest = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
template <class T>
inline constexpr T highest = std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();

/// Calls f(combine, identity) with the binary operation of a reduction and its identity element. The identity has the type of the
/// arithmetic, which is unsigned for sums and products of integers.
template <class T, class F>
constexpr decltype(auto) with_operation(reduction what, F&& f) {
  switch (what) {
    case reduction::max: return f(larger, lowest<T>);
    case reduction::min: return f(smaller, highest<T>);
    case reduction::prod: return f(times, modular<T>(1));
    case reduction::sum: break;
  }
  return f(plus, modular<T>(0));
}

}}}  // namespace gshard::v0::detail

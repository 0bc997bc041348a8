// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The operations of reductions: sum, maximum, minimum and product of two elements.

#include <gshard/base/math.hpp>
#include <gshard/ir/reduction.hpp>

#include <limits>

namespace gshard { inline namespace v0 { namespace detail {

// Of numbers or of vectors of numbers, as larger and smaller. No order of combination loses a NaN.
inline constexpr auto plus = [](const auto& a, const auto& b) { return a + b; };
inline constexpr auto times = [](const auto& a, const auto& b) { return a * b; };

/// What is below every other T, and what is above.
template <class T>
inline constexpr T lowest = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
template <class T>
inline constexpr T highest = std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();

/// f(combine, identity): how a reduction makes one T of two, and what it makes of none.
template <class T, class F>
constexpr decltype(auto) with_operation(reduction what, F&& f) {
  switch (what) {
    case reduction::max: return f(larger, lowest<T>);
    case reduction::min: return f(smaller, highest<T>);
    case reduction::prod: return f(times, T(1));
    case reduction::sum: break;
  }
  return f(plus, T(0));
}

}}}  // namespace gshard::v0::detail

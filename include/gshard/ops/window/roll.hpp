// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Rotates the elements along dims: roll.

#include <gshard/core/base/list_view.hpp>
#include <gshard/core/ir/window.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/ops/window/moved.hpp>

#include <cstdint>
#include <initializer_list>

namespace gshard { inline namespace v0 {

/// The shift of roll along one dim.
struct dim_shift {
  int dim = 0, shift = 0;
};

namespace detail {

constexpr window roll_window(int dim, int shift) {
  window w;
  w.over = std::int16_t(dim);
  w.low = -shift;
  w.wrap = true;
  return w;
}

}  // namespace detail

/// roll(x, dim, shift)[i] = x[(i - shift) mod N] along one dim of extent N. roll(x, {{0, 1}, {1, -2}}): several dims at once.
/// Shapes: any -> the same.
/// Communicates: nothing, or, if a dim is sharded, the elements that cross borders, in one exchange.
/// Compile time: that x has the dims.
/// Throws: nothing.
/// @see reverse, shift
constexpr symbol roll(here x, list_view<dim_shift> shifts) {
  return detail::emit_moved_dims(detail::roll_rules, "roll", x, shifts,
                                 [](const dim_shift& s, int dim) { return detail::roll_window(dim, s.shift); });
}
constexpr symbol roll(here x, std::initializer_list<dim_shift> shifts) {
  return roll(x, list_view(shifts.begin(), shifts.size()));
}
constexpr symbol roll(here x, int dim, int shift) { return roll(x, {{dim, shift}}); }
/// roll<1, 3>(x): the same with its numbers as template arguments, as on tensors outside of programs.
template <int Dim, int Shift>
constexpr symbol roll(here x) {
  return roll(x, Dim, Shift);
}

GSHARD_TAKES_NUMBERS(roll, (detail::call<3, symbol, int, int>::fits<Given...> ||
                            detail::call<2, symbol, detail::list_of<dim_shift>>::fits<Given...>), 2, 2, int,
                     (detail::tensors<1>::fits<Given...>),
                     "roll(x, dim, shift) takes a tensor of a program, a dim and an integer")

}}  // namespace gshard::v0

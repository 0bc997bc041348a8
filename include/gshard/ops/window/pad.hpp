// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Adds elements before, after and between the elements along dims: pad.

#include <gshard/core/base/list_view.hpp>
#include <gshard/core/ir/window.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/ops/window/moved.hpp>

#include <cstdint>
#include <initializer_list>

namespace gshard { inline namespace v0 {

/// The elements that pad adds along one dim. Negative `low` and `high` remove elements.
struct dim_padding {
  int dim = 0;
  int low = 0, high = 0, interior = 0;
};

namespace detail {

constexpr window pad_window(builder& b, int dim, int low, int high, int interior) {
  window w;
  w.over = std::int16_t(b.linear_dim(dim, 1 + interior, 0, 0, std::int64_t(low) + high - interior));
  w.low = -low;
  w.dilation = 1 + interior;
  return w;
}

}  // namespace detail

/// pad(x, dim, low, high, interior, fill): `low` elements before, `high` after and `interior` between the elements along one dim. Negative
/// `low` and `high` remove elements, and leave none if that is more than there are. pad(x, {{0, 1, 1}, {1, 0, 2}}, fill): several dims at
/// once.
/// Shapes: [..., N, ...] -> [..., low + N + (N - 1) interior + high, ...].
/// Communicates: nothing, or, if a dim is sharded, one exchange of the missing elements.
/// Compile time: that x has the dims; interior >= 0.
/// Throws: nothing.
/// @see slice
constexpr symbol pad(here x, list_view<dim_padding> paddings, double fill = 0) {
  builder& b = *x.owner;
  const auto make = [&](const dim_padding& p, int dim) {
    if (p.interior < 0) b.fail_range("pad", "interior", p.interior);
    return b.failed() ? window{} : detail::pad_window(b, dim, p.low, p.high, p.interior);
  };
  return detail::emit_moved_dims(detail::pad_rules, "pad", x, paddings, make, fill);
}
constexpr symbol pad(here x, std::initializer_list<dim_padding> paddings, double fill = 0) {
  return pad(x, list_view(paddings.begin(), paddings.size()), fill);
}
constexpr symbol pad(here x, int dim, int low, int high, int interior = 0, double fill = 0) {
  return pad(x, {{dim, low, high, interior}}, fill);
}
/// pad<1, 0, 8>(x): the same with its numbers as template arguments, as on tensors outside of programs.
template <int Dim, int Low, int High, int Interior = 0>
constexpr symbol pad(here x) {
  return pad(x, Dim, Low, High, Interior);
}

GSHARD_TAKES_NUMBERS(pad, (detail::call<4, symbol, int, int, int, int, double>::fits<Given...> ||
                           detail::call<2, symbol, detail::list_of<dim_padding>, double>::fits<Given...>), 3, 4, int,
                     (detail::tensors<1>::fits<Given...>),
                     "pad(x, dim, low, high, interior = 0, fill = 0) takes a tensor of a program, integers and a number")

}}  // namespace gshard::v0

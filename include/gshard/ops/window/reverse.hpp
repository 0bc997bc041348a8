// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Reverses the elements along dims: reverse.

#include <gshard/core/base/list_view.hpp>
#include <gshard/core/ir/window.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/ops/window/moved.hpp>

#include <cstdint>
#include <initializer_list>

namespace gshard { inline namespace v0 {

namespace detail {

constexpr window reverse_window(int dim) {
  window w;
  w.over = w.low_dim = std::int16_t(dim);
  w.stride = -1;
  w.plus_low = 1;
  w.low = -1;
  return w;
}

}  // namespace detail

/// reverse(x, dim)[i] = x[N - 1 - i] along one dim of extent N. reverse(x, {0, 1}): several dims at once.
/// Shapes: any -> the same.
/// Communicates: nothing, or, if a dim is sharded, one collective_permute: every block goes to its mirror image.
/// Compile time: that x has the dims.
/// Throws: nothing.
/// @see roll
constexpr symbol reverse(here x, list_view<int> dims) {
  return detail::emit_moved_dims(detail::reverse_rules, "reverse", x, dims, [](int, int dim) { return detail::reverse_window(dim); });
}
constexpr symbol reverse(here x, std::initializer_list<int> dims) {
  return reverse(x, list_view(dims.begin(), dims.size()));
}
constexpr symbol reverse(here x, int dim) {
  return reverse(x, list_view(&dim, 1));
}
/// reverse<1>(x): the same with its numbers as template arguments, as on tensors outside of programs.
template <int Dim>
constexpr symbol reverse(here x) {
  return reverse(x, Dim);
}

GSHARD_TAKES_NUMBERS(reverse, (detail::call<2, symbol, int>::fits<Given...> ||
                               detail::call<2, symbol, detail::list_of<int>>::fits<Given...>), 1, 1, int,
                     (detail::tensors<1>::fits<Given...>),
                     "reverse(x, dim) takes a tensor of a program and a dim")

}}  // namespace gshard::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Clipping of gradients by their global norm.

#include <gshard/core/base/list.hpp>
#include <gshard/core/base/list_view.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/ops/check/check_finite.hpp>

#include <array>
#include <cstddef>

namespace gshard { inline namespace v0 {

namespace detail {
inline constexpr auto clip_factor = [](auto square, auto norm) { return min(norm / sqrt(square), decltype(square)(1)); };
}  // namespace detail

/// The gradients times min(1, most / norm), where norm is the square root of the sum of the squares of all their elements.
/// Shapes: any -> the same.
/// Communicates: completes each gradient that is a partial sum; one all_reduce of one number for all of them.
/// Compile time: real element types.
/// Throws: nothing. If a gradient is NaN, all results are NaN.
/// @see adam
template <class Symbols>
  requires(detail::takes<detail::list_of<symbol>, Symbols>)
constexpr list<symbol> clip_by_global_norm(const Symbols& gradients, double most) {
  const list_view<symbol> given(gradients);
  list<symbol> result;
  for (const symbol& g : given) result.push_back(g);
  if (given.size() == 0 || given[0].owner->failed()) return result;
  builder& b = *given[0].owner;
  const line_of_call kept(b);
  symbol total;
  for (const symbol& g : given) {
    symbol sum = detail::emit_sum_of_squares(g);
    if (!b.failed() && total.id >= 0 && sum.get().type != total.get().type) sum = detail::emit_cast(sum, total.get().type);
    total = total.id < 0 || b.failed() ? sum : detail::emit_map(b, pointwise_add, std::array{total, sum});
  }
  if (!b.failed()) {
    const symbol limit = detail::emit_filled(total, most);
    const symbol factor = detail::emit_map(b, undifferentiated<when_used<Symbols, detail::clip_factor>, 2>, std::array{total, limit});
    for (symbol& g : result) {
      if (b.failed()) break;
      const symbol by = g.get().type == factor.get().type ? factor : detail::emit_cast(factor, g.get().type);
      g = detail::emit_map(b, detail::own_function<detail::arithmetic::multiply>, std::array{g, by});
    }
  }
  return result;
}

}}  // namespace gshard::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Selects ranges of the elements along dims: slice.

#include <gshard/core/base/list_view.hpp>
#include <gshard/core/ir/window.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/ops/window/moved.hpp>

#include <cstdint>
#include <initializer_list>

namespace gshard { inline namespace v0 {

/// The elements of one dim that slice keeps.
struct dim_range {
  int dim = 0;
  std::int64_t start = 0, stop = 0, stride = 1;
};

namespace detail {

constexpr window slice_window(builder& b, std::int64_t start, std::int64_t stop, std::int64_t stride) {
  window w;
  w.over = std::int16_t(b.fixed_dim((stop - start + stride - 1) / stride));
  w.stride = std::int32_t(stride);
  w.low = std::int32_t(start);
  return w;
}

}  // namespace detail

/// slice(x, dim, start, stop, stride)[i] = x[start + stride * i] along one dim, for start + stride * i < stop. slice(x, {{0, 1, 7}, {1, 0,
/// 8, 2}}): several dims at once, each with its start, stop and stride.
/// Shapes: [..., N, ...] -> [..., ceil((stop - start) / stride), ...].
/// Communicates: nothing, or, if a dim is sharded, one exchange of the missing elements.
/// Compile time: that x has the dims; 0 <= start <= stop; stride >= 1; stop <= N where N is known.
/// Throws: `gshard::error` when the program is bound, if stop > N.
/// @see pad, concat
constexpr symbol slice(here x, list_view<dim_range> ranges) {
  builder& b = *x.owner;
  const auto make = [&](const dim_range& r, int dim) {
    constexpr std::int64_t most = std::int64_t(1) << 31;
    const std::int64_t extent = b.known_extent(dim);
    if (r.start < 0 || r.start >= most) b.fail_range("slice", "start", r.start);
    else if (r.stop < r.start) b.fail_range("slice", "start, stop", r.start, r.stop);
    else if (r.stride < 1 || r.stride >= most) b.fail_range("slice", "stride", r.stride);
    else if (extent >= 0 && r.stop > extent) b.fail_range("slice", "stop, extent of x", r.stop, extent);
    return b.failed() ? window{} : detail::slice_window(b, r.start, r.stop, r.stride);
  };
  return detail::emit_moved_dims(detail::strided_slice_rules, "slice", x, ranges, make, 0, true);
}
constexpr symbol slice(here x, std::initializer_list<dim_range> ranges) {
  return slice(x, list_view(ranges.begin(), ranges.size()));
}
constexpr symbol slice(here x, int dim, std::int64_t start, std::int64_t stop, std::int64_t stride = 1) {
  return slice(x, {{dim, start, stop, stride}});
}
/// slice<1, 0, 8>(x): the same with its numbers as template arguments, as on tensors outside of programs.
template <int Dim, std::int64_t Start, std::int64_t Stop, std::int64_t Stride = 1>
constexpr symbol slice(here x) {
  return slice(x, Dim, Start, Stop, Stride);
}

GSHARD_TAKES_NUMBERS(slice, (detail::call<4, symbol, int, int, int, int>::fits<Given...> ||
                             detail::call<2, symbol, detail::list_of<dim_range>>::fits<Given...>), 3, 4, std::int64_t,
                     (detail::tensors<1>::fits<Given...>),
                     "slice(x, dim, start, stop, stride = 1) takes a tensor of a program and integers")

}}  // namespace gshard::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/kernel/sources.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gshard { inline namespace v0 { namespace kernel {

namespace detail {

template <class T>
void copy_row(const T* in, T* out, std::int64_t n, std::int64_t in_step, std::int64_t out_step) {
  if (in_step == 1 && out_step == 1) std::memcpy(out, in, std::size_t(n) * sizeof(T));
  else
    for (std::int64_t i = 0; i < n; ++i) out[i * out_step] = in[i * in_step];
}

/// Copies what has a source, and puts `fill` where there is none.
template <class T>
void move_rows(const sources& from, const T* in, T* out, T fill) {
  from.for_each([=](std::int64_t o, std::int64_t i, std::int64_t n, std::int64_t out_step,
                    std::int64_t in_step) { copy_row(in + i, out + o, n, in_step, out_step); },
                [=](std::int64_t o, std::int64_t n, std::int64_t step) {
                  for (std::int64_t i = 0; i < n; ++i) out[o + i * step] = fill;
                });
}

}  // namespace detail

/// out[o] = in[p / dilation] with p = windows[d].position(o[d]) along every dim, or `fill` where that is not whole or outside `in`:
/// slices, padding, reversal, steps, dilation, rotation. Indices are global; `in` is the region in_at of the tensor, which must hold
/// what is read. With wrap the region may begin before the dim or end after it. Taps are not looked at.
template <class T>
void move_window(const T* in, const placement& in_at, T* out, const placement& out_at, const window_array& windows, T fill) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  detail::move_rows(sources(windows, {}, in_at, out_at, row_major_strides(out_at.rank, out_at.extent)), in, out, fill);
}

/// The same, but elements of `out` that would be `fill` stay as they are: several operands side by side make a concatenation.
template <class T>
void move_window_into(const T* in, const placement& in_at, T* out, const placement& out_at, const window_array& windows) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  sources(windows, {}, in_at, out_at, row_major_strides(out_at.rank, out_at.extent))
      .for_each([=](std::int64_t o, std::int64_t i, std::int64_t n, std::int64_t out_step,
                    std::int64_t in_step) { detail::copy_row(in + i, out + o, n, in_step, out_step); },
                [](std::int64_t, std::int64_t, std::int64_t) {});
}

}}}  // namespace gshard::v0::kernel

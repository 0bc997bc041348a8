// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Moves elements through windows: slices, padding, reversal, dilation, rotation and concatenation.

#include <gshard/exec/kernel/window/sources.hpp>

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

/// Copies the elements that have a source, and calls gap(out, n, out_step) for the others.
template <class T, class Gap>
void move_rows(const sources& from, const T* in, T* out, Gap gap) {
  from.for_each([=](std::int64_t o, std::int64_t i, std::int64_t n, std::int64_t out_step,
                    std::int64_t in_step) { copy_row(in + i, out + o, n, in_step, out_step); },
                gap);
}
/// The same, with `fill` for the others.
template <class T>
void fill_and_move_rows(const sources& from, const T* in, T* out, T fill) {
  move_rows(from, in, out, [=](std::int64_t o, std::int64_t n, std::int64_t step) {
    for (std::int64_t i = 0; i < n; ++i) out[o + i * step] = fill;
  });
}

}  // namespace detail

/// out[o] = in[p / dilation] with p = windows[d].position(o[d]) along every dim. `fill` where p / dilation is not an integer or is outside
/// the tensor. This serves slices, padding, reversal, strides, dilation and rotation. Prepared once and run many times. Indices are global.
/// `in` is the region in_at of the tensor, which must hold all elements that are read. With wrap, the region may begin before the dim or
/// end after it. Taps are ignored.
template <class T>
class window_move {
 public:
  window_move(const placement& in_at, const placement& out_at, const window_array& windows)
      : from_(windows, {}, in_at, out_at, row_major_strides(out_at.rank, out_at.extent)) {}

  void run(const T* in, T* out, T fill) const { detail::fill_and_move_rows(from_, in, out, fill); }
  /// Does not write elements of `out` that would be `fill`. Several operands next to each other therefore form a concatenation.
  void run_into(const T* in, T* out) const {
    detail::move_rows(from_, in, out, [](std::int64_t, std::int64_t, std::int64_t) {});
  }

 private:
  sources from_;
};

}}}  // namespace gshard::v0::kernel

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Kernels of max_pool and min_pool, and of their gradient.

#include <gshard/exec/bind/local_step.hpp>
#include <gshard/exec/kernel/threads.hpp>
#include <gshard/exec/kernel/window/sources.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/exec/reduce/combine.hpp>
#include <gshard/ops/window/pool.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gshard { inline namespace v0 { namespace kernel {

namespace detail {

/// The elements that a shard reads at every tap of its windows, slice by slice.
class tap_sources {
 public:
  tap_sources(const window_array& windows, const placement& in_at, const placement& out_at) {
    constexpr std::int64_t slice_elements = 1 << 14;  // they stay in the cache from tap to tap
    for_each_slice(out_at, slice_elements, [&](const placement& at, std::int64_t first) {
      slice& s = slices_.emplace_back(slice{first, element_count(at.rank, at.extent), {}});
      for_each_tap(at.rank, windows, [&](const index_array& taps, std::int64_t) {
        s.taps.emplace_back(windows, taps, in_at, at, row_major_strides(at.rank, at.extent));
      });
    });
  }

  /// For every slice, on several threads: calls begin(first, n), then element(out, in, tap) for all elements that read an element at that
  /// tap. `out` and `in` are offsets in the shard and in the region, `tap` is the number of the tap.
  template <class Begin, class Element>
  void for_each(Begin begin, Element element) const {
    parallel_for(std::int64_t(slices_.size()), 1, [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t i = from; i < to; ++i) visit(slices_[std::size_t(i)], begin, element);
    });
  }

 private:
  struct slice {
    std::int64_t first, elements;
    std::vector<sources> taps;
  };
  std::vector<slice> slices_;

  template <class Begin, class Element>
  static void visit(const slice& s, Begin begin, Element element) {
    begin(s.first, s.elements);
    for (std::size_t t = 0; t < s.taps.size(); ++t)
      s.taps[t].for_each(
          [=](std::int64_t o, std::int64_t i, std::int64_t count, std::int64_t out_step, std::int64_t in_step) {
            for (std::int64_t k = 0; k < count; ++k, o += out_step, i += in_step) element(s.first + o, i, std::int32_t(t));
          },
          [](std::int64_t, std::int64_t, std::int64_t) {});
  }
};

}  // namespace detail

/// out[o] = the largest (reduction::max) or smallest (min) of the elements that o reads through the windows. tap[o] = the row-major number
/// of the taps of the first such element. NaN wins over all other values. If nothing is read, out is the identity of the reduction, and tap
/// is -1. Prepared once and run many times. Indices are global. `in` is the region in_at of its tensor, which must hold all elements that
/// are read. out and tap are placed at out_at. Throws gshard::error for other reductions.
class pooling {
 public:
  pooling(const placement& in_at, const placement& out_at, const window_array& windows) : from_(windows, in_at, out_at) {}

  template <class T>
  void run(reduction what, const T* in, T* out, std::int32_t* tap) const {
    if (what == reduction::max) best<true>(in, out, tap);
    else if (what == reduction::min) best<false>(in, out, tap);
    else throw error("pool: only max and min pooling have indices");
  }

 private:
  detail::tap_sources from_;

  template <bool Largest, class T>
  void best(const T* in, T* out, std::int32_t* tap) const {
    from_.for_each(
        [=](std::int64_t first, std::int64_t n) {
          std::fill_n(out + first, n, Largest ? gshard::detail::lowest<T> : gshard::detail::highest<T>);
          std::fill_n(tap + first, n, -1);
        },
        [=](std::int64_t o, std::int64_t i, std::int32_t number) {
          const T x = in[i], y = out[o];
          const bool take = tap[o] < 0 || (Largest ? x > y : x < y) || (x != x && y == y);
          out[o] = take ? x : y;
          tap[o] = take ? number : tap[o];
        });
  }
};

/// The gradient of pooling, with its windows: dx[p] = sum of dy[o] over the o whose largest (or smallest) element is p. Prepared once and
/// run many times. tap and dy are the regions tap_at and dy_at of their tensors. Both must hold all o that read the shard dx_at. With wrap,
/// strides times extents of dy must equal dilations times extents of dx.
class pooling_grad {
 public:
  pooling_grad(const placement& tap_at, const placement& dy_at, const placement& dx_at, const window_array& windows)
      : from_(readers(windows), dy_at, dx_at) {
    if (tap_at.offset != dy_at.offset || tap_at.extent != dy_at.extent) find_taps(tap_at, dy_at, windows);
  }

  template <class T>
  void run(const std::int32_t* tap, const T* dy, T* dx) const {
    const std::int64_t* const at = tap_of_.empty() ? nullptr : tap_of_.data();
    from_.for_each(
        [=](std::int64_t first, std::int64_t n) { std::fill_n(dx + first, n, T(0)); },
        [=](std::int64_t p, std::int64_t o, std::int32_t number) { dx[p] += tap[at ? at[o] : o] == number ? dy[o] : T(0); });
  }

 private:
  detail::tap_sources from_;
  std::vector<std::int64_t> tap_of_;  // if the regions differ: offset in tap of every element of dy, arbitrary if the element is not read

  void find_taps(const placement& tap_at, const placement& dy_at, const window_array& windows) {
    tap_of_.assign(std::size_t(element_count(dy_at.rank, dy_at.extent)), 0);
    const index_array tap_stride = row_major_strides(tap_at.rank, tap_at.extent), dy_stride = row_major_strides(dy_at.rank, dy_at.extent);
    for (std::size_t e = 0; e < tap_of_.size(); ++e) {
      std::int64_t rest = std::int64_t(e), tap = 0;
      bool held = true;
      for (std::size_t d = 0; d < std::size_t(dy_at.rank); ++d) {
        const std::int64_t i = source_of({.wrap = windows[d].wrap}, dy_at.offset[d] + rest / dy_stride[d], tap_at.offset[d],
                                         tap_at.extent[d], tap_at.global[d]);
        rest %= dy_stride[d];
        held = held && i >= 0;
        tap += i * tap_stride[d];
      }
      if (held) tap_of_[e] = tap;
    }
  }

  static window_array readers(window_array windows) {
    for (bound_window& w : windows) w = w.inverse();
    return windows;
  }
};

}}}  // namespace gshard::v0::kernel

namespace gshard { inline namespace v0 { namespace detail {

template <class T>
action bind(kernel_of<op::pool>, const local_step<T>& step) {
  return [pool = kernel::pooling(step.in_place(0), step.out_place(), step.windows(0)), what = step.n.attr.combine, x = step.in(0),
          y = step.out(0), tap = step.out_ids(1)](const run_context&) { pool.run(what, x, y, tap); };
}

template <class T>
action bind(kernel_of<op::pool_grad>, const local_step<T>& step) {
  kernel::window_array inverse = step.windows(0);
  for (bound_window& w : inverse) w = w.inverse();
  return [pool = kernel::pooling_grad(step.in_place(0), step.in_place(1), step.out_place(), inverse), tap = step.ids(0), dy = step.in(1),
          dx = step.out()](const run_context&) { pool.run(tap, dy, dx); };
}

}}}  // namespace gshard::v0::detail

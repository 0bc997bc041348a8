// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/comm/combine.hpp>
#include <gshard/comm/error.hpp>
#include <gshard/kernel/sources.hpp>

#include <algorithm>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace kernel {

namespace detail {

inline constexpr std::int64_t pool_slice = 1 << 14;  // elements that stay in the cache from tap to tap

template <bool Largest, class T>
void pool(const T* in, const placement& in_at, T* out, std::int32_t* tap, const placement& out_at, const window_array& windows) {
  const auto better = [](T x, T y) { return (Largest ? x > y : x < y) || (x != x && y == y); };
  for_each_slice(out_at, pool_slice, [&](const placement& slice, std::int64_t first) {
    const std::int64_t n = element_count(slice.rank, slice.extent);
    T* best = out + first;
    std::int32_t* which = tap + first;
    std::fill_n(best, n, Largest ? gshard::detail::lowest<T> : gshard::detail::highest<T>);
    std::fill_n(which, n, -1);
    for_each_tap(slice.rank, windows, [&](const index_array& taps, std::int64_t flat) {
      sources(windows, taps, in_at, slice, row_major_strides(slice.rank, slice.extent))
          .for_each(
              [=](std::int64_t o, std::int64_t i, std::int64_t count, std::int64_t out_step, std::int64_t in_step) {
                for (std::int64_t k = 0; k < count; ++k, o += out_step, i += in_step) {
                  const bool take = which[o] < 0 || better(in[i], best[o]);
                  best[o] = take ? in[i] : best[o];
                  which[o] = take ? std::int32_t(flat) : which[o];
                }
              },
              [](std::int64_t, std::int64_t, std::int64_t) {});
    });
  });
}

}  // namespace detail

/// out[o] = the largest (reduction::max) or smallest (min) of the elements that o reads through the windows, tap[o] the row-major number
/// of the taps of the first such element. A NaN is better than everything. Where nothing is read: what the reduction gives for none,
/// and -1. Indices are global; `in` is the region in_at of its tensor, which must hold all that is read; out and tap lie at out_at.
/// Throws gshard::error for other reductions.
template <class T>
void pool(reduction what, const T* in, const placement& in_at, T* out, std::int32_t* tap, const placement& out_at,
          const window_array& windows) {
  if (what == reduction::max) detail::pool<true>(in, in_at, out, tap, out_at, windows);
  else if (what == reduction::min) detail::pool<false>(in, in_at, out, tap, out_at, windows);
  else throw error("pool: only the largest or the smallest element has a place");
}

/// dx[p] = sum of dy[o] over the o that took p: the gradient of pool, with its windows. tap and dy are the region dy_at of their
/// tensor, which must hold all o that read the shard dx_at. With wrap there must be as many positions as are read: the strides times
/// the extents of dy are the dilations times those of dx.
template <class T>
void pool_grad(const std::int32_t* tap, const T* dy, const placement& dy_at, T* dx, const placement& dx_at, const window_array& windows) {
  window_array readers;
  std::transform(windows.begin(), windows.end(), readers.begin(), [](const bound_window& w) { return w.inverse(); });
  for_each_slice(dx_at, detail::pool_slice, [&](const placement& slice, std::int64_t first) {
    T* sum = dx + first;
    std::fill_n(sum, element_count(slice.rank, slice.extent), T(0));
    for_each_tap(slice.rank, windows, [&](const index_array& taps, std::int64_t flat) {
      sources(readers, taps, dy_at, slice, row_major_strides(slice.rank, slice.extent))
          .for_each(
              [=](std::int64_t p, std::int64_t o, std::int64_t count, std::int64_t p_step, std::int64_t o_step) {
                for (std::int64_t k = 0; k < count; ++k, p += p_step, o += o_step) sum[p] += tap[o] == flat ? dy[o] : T(0);
              },
              [](std::int64_t, std::int64_t, std::int64_t) {});
    });
  });
}

}}}  // namespace gshard::v0::kernel

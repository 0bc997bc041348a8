// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/base/list_view.hpp>
#include <gshard/ir/graph.hpp>
#include <gshard/ir/window.hpp>
#include <gshard/pass/cost.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

using coordinates = std::array<int, max_axes>;

/// What a device holds of dim d: its block, or, through a window, what its block of another dim reads.
constexpr interval held(const value& v, int d, list_view<window> windows, const extents& e, const coordinates& at) {
  const std::int64_t extent = e.dim(v.dims[d]);
  const int row = v.windows.empty() ? 0 : v.windows[d];
  if (row == 0) return block_of(extent, v.layout[d], e.axes, at);
  const window& w = windows[std::size_t(row)];
  return reach(w.bind(e), block_of(e.dim(w.over), v.layout[d], e.axes, at), extent);
}

/// Whether `wanted`, which may go beyond the end of a dim of `extent` and on at its start, meets `has`, and in how many indices.
constexpr std::int64_t overlap(const interval& has, const interval& wanted, std::int64_t extent) {
  std::int64_t n = has.common(wanted).size();
  if (wanted.end > extent) n += has.shifted(extent).common(wanted).size();
  return n;
}

/// Calls f(coordinates) for the devices along the axes of a mask, all others at 0; of a long axis for its ends and its middle alone.
template <class F>
constexpr void for_each_place(std::uint32_t axes, const extents& e, F f) {
  constexpr int all_of = 16;
  coordinates at{};
  for (;;) {
    f(at);
    std::size_t a = 0;
    for (; a < max_axes; ++a) {
      if (!((axes >> a) & 1u)) continue;
      const int n = e.axis(int(a));
      ++at[a];
      if (n > all_of && at[a] == 2) at[a] = n / 2;
      if (n > all_of && at[a] == n / 2 + 1) at[a] = n - 2;
      if (at[a] < n) break;
      at[a] = 0;
    }
    if (a == max_axes) return;
  }
}

constexpr std::uint32_t axes_of_windows(const value& v) {
  std::uint32_t mask = 0;
  for (int d = 0; d < v.windows.size(); ++d)
    if (v.windows[d]) mask |= v.layout[d].mask();
  return mask;
}

/// Bytes of its new shard that a device lacks where one of the two holds what windows read; on the device that lacks most.
constexpr std::int64_t bytes_lacking(const value& from, const value& to, list_view<window> windows, const extents& e) {
  std::int64_t most = 0;
  for_each_place(axes_of_windows(from) | axes_of_windows(to), e, [&](const coordinates& at) {
    std::int64_t wanted = 1, has = 1;
    for (int d = 0; d < to.rank(); ++d) {
      const interval goal = held(to, d, windows, e, at);
      wanted *= goal.size();
      has *= overlap(held(from, d, windows, e, at), goal, e.dim(to.dims[d]));
    }
    if (wanted - has > most) most = wanted - has;
  });
  return most * size_of(to.type);
}

/// Whether the extents that say what is held of a dim, cut over `axes`, are known and not assumed.
constexpr bool is_known(const window& w, int dim, const short_list& axes, const extents& e) {
  const auto known = [&](int d) { return d == window::none || e.knows_dim(d); };
  return (axes.mask() & ~e.known_axes) == 0 && known(dim) && known(w.over) && known(w.stride_dim) && known(w.low_dim) && known(w.taps_dim);
}

/// Whether every device has all that it will hold, whatever extents are not known yet. Both over the same axes.
constexpr bool lacks_nothing(const value& from, const value& to, list_view<window> windows, const extents& e) {
  for (int d = 0; d < to.rank(); ++d)
    for (const value* v : {&from, &to})
      if (const int row = v->windows.empty() ? 0 : v->windows[d]; row && !is_known(windows[std::size_t(row)], v->dims[d], v->layout[d], e)) return false;
  return from.layout.same_layout(to.layout) && bytes_lacking(from, to, windows, e) == 0;
}

/// Whether every device's block of a dim, cut over `axes`, is just what its block of another dim reads, whatever extents are not known
/// yet: nothing needs to move.
constexpr bool reads_its_block(const window& w, int dim, const short_list& axes, const extents& e) {
  if (!is_known(w, dim, axes, e)) return false;
  const bound_window bound = w.bind(e);
  bool same = true;
  for_each_place(axes.mask(), e, [&](const coordinates& at) {
    const interval block = block_of(e.dim(dim), axes, e.axes, at), read = reach(bound, block_of(e.dim(w.over), axes, e.axes, at), e.dim(dim));
    same = same && (block == read || (block.size() == 0 && read.size() == 0));
  });
  return same;
}

}  // namespace detail

/// The largest shard of a tensor in elements, windows included.
constexpr std::int64_t shard_elements(const value& v, list_view<window> windows, const extents& e) {
  if (v.windows.empty()) return shard_elements(v.dims, v.layout, e);
  std::int64_t most = 0;
  detail::for_each_place(detail::axes_of_windows(v), e, [&](const detail::coordinates& at) {
    std::int64_t n = 1;
    for (int d = 0; d < v.rank(); ++d) n *= detail::held(v, d, windows, e, at).size();
    if (n > most) most = n;
  });
  return most;
}

/// The same as bytes_received of two layouts, for tensors that may be held through windows.
constexpr std::int64_t bytes_received(op kind, std::uint32_t axes, const value& from, const value& to, list_view<window> windows,
                                      const extents& e) {
  if (from.windows.empty() && to.windows.empty()) return bytes_received(kind, axes, from, from.layout, to.layout, e);
  return e.devices(axes) <= 1 || kind == op::slice ? 0 : detail::bytes_lacking(from, to, windows, e);
}

}}  // namespace gshard::v0

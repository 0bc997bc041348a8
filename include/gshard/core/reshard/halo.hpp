// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Halo exchange: the elements of a sharded dim that each device reads through a window, and the bytes that an exchange moves.

#include <gshard/core/base/list_view.hpp>
#include <gshard/core/ir/device_order.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/ir/window.hpp>
#include <gshard/core/reshard/cost.hpp>
#include <gshard/core/reshard/reshard.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

using mesh_place = std::array<int, max_axes>;

/// The indices of dim d that a device holds: its block, or, through a window, the indices that its block of another dim reads.
constexpr interval held(const value& v, int d, list_view<window> windows, const extents& e, const mesh_place& at) {
  const std::int64_t extent = e.dim(v.dims[d]);
  const int row = v.windows.empty() ? 0 : v.windows[d];
  if (row == 0) return block_of(extent, v.layout[d], e.axes, at);
  const window& w = windows[std::size_t(row)];
  return reach(w.bind(e), block_of(e.dim(w.over), v.layout[d], e.axes, at), extent);
}

/// The number of indices that `has` and `wanted` share. `wanted` may go beyond the end of a dim of `extent`, and wraps around.
constexpr std::int64_t overlap(const interval& has, const interval& wanted, std::int64_t extent) {
  std::int64_t n = has.common(wanted).size();
  if (wanted.end > extent) n += has.shifted(extent).common(wanted).size();
  return n;
}

/// Along axes up to this extent all devices are checked; along longer axes the ends and the middle, if windows have no pairs.
inline constexpr int all_of = 16;

constexpr bool has_pairs(const value& v, list_view<window> windows) {
  for (int d = 0; d < v.windows.size(); ++d)
    if (!windows[std::size_t(v.windows[d])].pairs.empty()) return true;
  return false;
}

/// Calls f(coordinates) for the devices along the axes of a mask: for all, or only for the devices to check. All other coordinates are 0.
template <class F>
constexpr void for_each_place(std::uint32_t axes, const extents& e, bool all, F f) {
  mesh_place at{};
  for (;;) {
    f(at);
    std::size_t a = 0;
    for (; a < max_axes; ++a) {
      if (!((axes >> a) & 1u)) continue;
      const int n = e.axis(int(a));
      ++at[a];
      if (n > all_of && !all && at[a] == 2) at[a] = n / 2;
      if (n > all_of && !all && at[a] == n / 2 + 1) at[a] = n - 2;
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

/// The axes along which devices hold different data, before or after a move.
constexpr std::uint32_t axes_of_move(const value& from, const value& to) {
  return moving_axes(from.layout, to.layout) | axes_of_windows(from) | axes_of_windows(to);
}

/// Bytes of its new shard that a device lacks, if a form has windows or another device order. The device is at mesh coordinates `before` in
/// the old form, and at `after` in the new one.
constexpr std::int64_t bytes_lacking(const value& from, const value& to, list_view<window> windows, const extents& e,
                                     const mesh_place& before, const mesh_place& after) {
  std::int64_t wanted = 1, has = 1;
  for (int d = 0; d < to.rank(); ++d) {
    const interval goal = held(to, d, windows, e, after);
    wanted *= goal.size();
    has *= overlap(held(from, d, windows, e, before), goal, e.dim(to.dims[d]));
  }
  return (wanted - has) * size_of(to.type);
}
/// The same on the device that lacks most.
constexpr std::int64_t bytes_lacking(const value& from, const value& to, list_view<window> windows, const extents& e) {
  std::int64_t most = 0;
  for_each_place(axes_of_move(from, to), e, has_pairs(from, windows) || has_pairs(to, windows), [&](const mesh_place& at) {
    const std::int64_t bytes = bytes_lacking(from, to, windows, e, at, at);
    if (bytes > most) most = bytes;
  });
  return most;
}

}  // namespace detail

/// Bytes that the busiest device receives when a tensor is resharded between device orders, windows included.
// A template, so that only programs with device orders pay for it.
template <class Extents>
constexpr std::int64_t bytes_between_orders(const value& from, const value& to, list_view<window> windows, list_view<int> rows,
                                            const Extents& e) {
  const device_orders orders{rows, int(e.devices(e.known_axes))};
  const auto place_of = [&](int order, int device) {
    detail::mesh_place at{};
    int position = orders.position(order, device);
    for (int a = max_axes; a-- > 0;) {
      if (!((e.known_axes >> a) & 1u)) continue;
      at[std::size_t(a)] = position % e.axis(a);
      position /= e.axis(a);
    }
    return at;
  };
  std::int64_t most = 0;
  for (int device = 0; device < orders.devices; ++device) {
    const std::int64_t bytes =
        detail::bytes_lacking(from, to, windows, e, place_of(from.layout.order, device), place_of(to.layout.order, device));
    if (bytes > most) most = bytes;
  }
  return most;
}

namespace detail {

/// True if the extents that define the shards of a dim over `axes` are known and not assumed.
constexpr bool is_known(const window& w, int dim, const short_list& axes, const extents& e) {
  const auto known = [&](int d) { return d == window::none || e.knows_dim(d); };
  return (axes.mask() & ~e.known_axes) == 0 && known(dim) && known(w.over) && known(w.stride_dim) && known(w.low_dim) && known(w.taps_dim);
}

/// True if every device has all of its new shard, for any values of the unknown extents. Along long axes not all devices are checked, so
/// the answer is false. Between device orders all devices are checked.
constexpr bool lacks_nothing(const value& from, const value& to, list_view<window> windows, list_view<int> orders, const extents& e) {
  const bool reordered = from.layout.order != to.layout.order;
  std::uint32_t axes = reordered ? 0 : axes_of_move(from, to);
  for (int a = 0; axes != 0; ++a, axes >>= 1)
    if ((axes & 1u) && e.axis(a) > all_of) return false;
  for (int d = 0; d < to.rank(); ++d) {
    const int before = from.windows.empty() ? 0 : from.windows[d], after = to.windows.empty() ? 0 : to.windows[d];
    if (before == after && from.layout[d] == to.layout[d] && (!reordered || to.layout[d].empty())) continue;
    if (!is_known(windows[std::size_t(before)], from.dims[d], from.layout[d], e) ||
        !is_known(windows[std::size_t(after)], to.dims[d], to.layout[d], e))
      return false;
  }
  return (reordered ? bytes_between_orders(from, to, windows, orders, e) : bytes_lacking(from, to, windows, e)) == 0;
}

/// True if the window of an unsharded dim is known to read less than all of it.
constexpr bool reads_less(const window& w, int dim, const extents& e) {
  return is_known(w, dim, {}, e) && reach(w.bind(e), {0, e.dim(w.over)}, e.dim(dim)).size() < e.dim(dim);
}

/// True if each device's block of a dim over `axes` equals the part that its block of another dim reads. This holds for any values of the
/// unknown extents, so nothing needs to move.
constexpr bool reads_its_block(const window& w, int dim, const short_list& axes, const extents& e) {
  if (!is_known(w, dim, axes, e)) return false;
  const bound_window bound = w.bind(e);
  // Along long axes not all devices are checked. This proves the result only for blocks of equal size, which begin in equal steps.
  const std::int64_t blocks = e.devices(axes.mask());
  for (int i = 0; i < axes.size(); ++i)
    if (e.axis(axes[i]) > all_of && (w.wrap || !w.pairs.empty() || e.dim(dim) % blocks != 0 || e.dim(w.over) % blocks != 0)) return false;
  bool same = true;
  for_each_place(axes.mask(), e, false, [&](const mesh_place& at) {
    const interval block = block_of(e.dim(dim), axes, e.axes, at),
                   read = reach(bound, block_of(e.dim(w.over), axes, e.axes, at), e.dim(dim));
    same = same && (block == read || (block.size() == 0 && read.size() == 0));
  });
  return same;
}

/// The factors of an operand of a node. A dim that is known to have more taps than positions takes the factor of its taps, which is better
/// to shard.
constexpr short_list longer_factors(const node& n, int operand, list_view<window> windows, const extents& e) {
  short_list factors = n.rule.in[operand];
  if (!traits(n.kind).taps) return factors;
  for (int d = 0; d < factors.size(); ++d) {
    const int tap = tap_factor(n, operand, d);
    if (tap < 0) continue;
    const window& w = windows[std::size_t(window_row(n, operand, d))];
    if (e.knows_dim(w.over) && e.knows_dim(w.taps_dim) && e.dim(w.taps_dim) > e.dim(w.over)) factors.set(d, tap);
  }
  return factors;
}

}  // namespace detail

/// The largest shard of a tensor in elements, windows included.
constexpr std::int64_t shard_elements(const value& v, list_view<window> windows, const extents& e) {
  if (v.windows.empty()) return shard_elements(v.dims, v.layout, e);
  std::int64_t most = 0;
  detail::for_each_place(detail::axes_of_windows(v), e, detail::has_pairs(v, windows), [&](const detail::mesh_place& at) {
    std::int64_t n = 1;
    for (int d = 0; d < v.rank(); ++d) n *= detail::held(v, d, windows, e, at).size();
    if (n > most) most = n;
  });
  return most;
}

/// The planner's estimate of the bytes that one device receives in a step that moves all its operands together, windows included.
/// @see plan_view::bytes_received
constexpr std::int64_t bytes_received(const node& step, list_view<value> values, list_view<window> windows, const extents& e) {
  const std::uint32_t axes = step.attr.axes;
  const std::int64_t n = e.devices(axes);
  if (n <= 1 || !traits(step.kind).collective) return 0;
  const auto from = [&](int i) -> const value& { return values[std::size_t(step.in[i])]; };
  const auto to = [&](int i) -> const value& { return values[std::size_t(step.out[i])]; };
  const bool all_reduces = step.kind == op::all_reduce;
  std::int64_t total = 0;
  bool reads = false, pairs = false;
  std::uint32_t moving = 0;
  for (int i = 0; i < step.inputs; ++i) {
    const value &before = from(i), &after = to(i);
    reads = reads || !before.windows.empty() || !after.windows.empty();
    pairs = pairs || detail::has_pairs(before, windows) || detail::has_pairs(after, windows);
    moving |= detail::axes_of_move(before, after);
    total += all_reduces ? shard_elements(before.dims, before.layout, e) * size_of(before.type)
                         : bytes_received(step.kind, axes, before, before.layout, after.layout, e);
  }
  if (all_reduces) return bytes_of_sum(total, from(0).type, n);
  if (!reads) return total;
  std::int64_t most = 0;
  detail::for_each_place(moving, e, pairs, [&](const detail::mesh_place& at) {
    std::int64_t bytes = 0;
    for (int i = 0; i < step.inputs; ++i) bytes += detail::bytes_lacking(from(i), to(i), windows, e, at, at);
    if (bytes > most) most = bytes;
  });
  return most;
}

}}  // namespace gshard::v0

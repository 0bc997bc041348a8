// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Places a mesh of devices on a torus of chips, and prices collectives along its axes.

#include <gshard/core/base/list_view.hpp>
#include <gshard/core/ir/mesh.hpp>
#include <gshard/core/ir/op.hpp>
#include <gshard/core/reshard/cost.hpp>
#include <gshard/sim/network/torus.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace gshard { inline namespace v0 {

/// A part of a torus over which an axis of a mesh runs: `extent` positions of a dimension, `stride` apart, or cores of a chip.
struct torus_part {
  static constexpr int cores = -1;

  int dim = 0;     ///< or `cores`
  int extent = 0;  ///< 0: all of it
  int stride = 1;

  constexpr bool operator==(const torus_part&) const = default;
};

/// A chip by its coordinates, and one of its cores.
struct torus_place {
  std::array<int, torus::max_dims> at{};
  int core = 0;

  constexpr bool operator==(const torus_place&) const = default;
};

/// A mesh of devices placed on a torus: each mesh axis runs over dimensions of the torus, or over parts of them. It is a network: it prices
/// the collectives of a plan for that mesh, with the extents of the placement.
///
///     torus_mesh(t)                             one axis over all devices, row-major, the cores of a chip next to each other
///     torus_mesh(t, {4, 512})                   a mesh of these extents, row-major on the torus: the last axis takes the cores, then
///                                               the last dimensions; of a partly filled dimension it takes neighbors
///     torus_mesh(t, {}).add({{0}}).add({{1}, {torus_part::cores}})   explicit: axis 0 along dimension 0, axis 1 along dimension 1
///                                               and the cores
///
/// An axis may follow a snake: consecutive devices are then neighbors, while row-major order needs two hops from row to row. The placement
/// is valid if the parts of all axes cover the torus exactly once, and are at most torus_group::max_rings.
class torus_mesh {
  struct axis {
    static constexpr int max_parts = 2 * (torus::max_dims + 1);
    std::array<torus_part, max_parts> parts{};  // major to minor
    int count = 0;
    bool snake = false;

    constexpr bool add(const torus_part& p) {
      if (count == max_parts) return false;
      parts[std::size_t(count++)] = p;
      return true;
    }
  };

  torus torus_;
  std::array<axis, max_axes> places_{};
  int axes_ = 0;
  bool fits_ = true;

  /// The extent of consecutive parts of a dimension that begin with a stride, in the axes of a mask.
  constexpr int run(std::uint32_t axes, int dim, int stride) const {
    int n = 1;
    for (bool found = true; found;) {
      found = false;
      for (int a = 0; a < axes_; ++a)
        for (int i = 0; i < places_[std::size_t(a)].count && ((axes >> a) & 1u); ++i) {
          const torus_part& p = places_[std::size_t(a)].parts[std::size_t(i)];
          if (p.dim != dim || p.stride != stride * n) continue;
          n *= p.extent;
          found = true;
        }
    }
    return n;
  }
  /// Calls f(extent, stride) for the parts of a dimension in the axes of a mask, minor to major. Consecutive parts are joined.
  template <class F>
  constexpr void for_each_run(std::uint32_t axes, int dim, int whole, F f) const {
    for (int stride = 1; stride < whole;) {
      const int n = run(axes, dim, stride);
      if (n > 1) f(n, stride);
      stride = n > 1 ? stride * n : stride + 1;
    }
  }
  /// Device number i of a group. All other coordinates are 0.
  constexpr int member(std::uint32_t axes, int i) const {
    int device = 0, step = 1;
    for (int a = axes_; a-- > 0; step *= extent(a)) {
      if (!((axes >> a) & 1u)) continue;
      device += i % extent(a) * step;
      i /= extent(a);
    }
    return device;
  }

 public:
  constexpr explicit torus_mesh(const torus& t) : torus_mesh(t, {t.devices()}) {}
  constexpr torus_mesh(const torus& t, std::initializer_list<int> extents)
      : torus_mesh(t, list_view<int>(extents.begin(), extents.size())) {}
  constexpr torus_mesh(const torus& t, list_view<int> extents) : torus_(t), fits_(extents.size() <= std::size_t(max_axes)) {
    if (!fits_) return;
    int dim = t.cores > 1 ? t.dims : t.dims - 1, taken = 1;  // t.dims denotes the cores
    axes_ = int(extents.size());
    for (int a = axes_; a-- > 0;) {
      int wanted = extents[std::size_t(a)];
      axis rest;  // minor to major
      while (wanted > 1 && dim >= 0) {
        const int whole = dim == t.dims ? t.cores : t.extent(dim), left = whole / taken;
        const int take = wanted % left == 0 ? left : wanted;
        if (left % take != 0) break;
        if (take > 1 && !rest.add({dim == t.dims ? torus_part::cores : dim, take, taken})) break;
        wanted /= take;
        taken *= take;
        if (taken == whole) {
          --dim;
          taken = 1;
        }
      }
      fits_ = fits_ && wanted == 1;
      for (int i = rest.count; i-- > 0;) places_[std::size_t(a)].add(rest.parts[std::size_t(i)]);
    }
  }

  /// Adds an axis over these parts, major to minor.
  constexpr torus_mesh& add(std::initializer_list<torus_part> parts, bool snake = false) {
    fits_ = fits_ && axes_ < max_axes;
    if (!fits_) return *this;
    axis& next = places_[std::size_t(axes_++)];
    for (torus_part p : parts) {
      if (p.dim < torus_part::cores || p.dim >= torus_.dims) {
        fits_ = false;
        continue;
      }
      if (p.extent == 0) p.extent = p.dim == torus_part::cores ? torus_.cores : torus_.extent(p.dim);
      if (p.extent > 1) fits_ = next.add(p) && fits_;
    }
    next.snake = snake;
    return *this;
  }
  /// Puts an axis into snake order.
  constexpr torus_mesh& follow_snake(int a) {
    places_[std::size_t(a)].snake = true;
    return *this;
  }

  constexpr const torus& topology() const { return torus_; }
  constexpr torus& topology() { return torus_; }
  constexpr int rank() const { return axes_; }
  constexpr int extent(int a) const {
    int n = 1;
    for (int i = 0; i < places_[std::size_t(a)].count; ++i) n *= places_[std::size_t(a)].parts[std::size_t(i)].extent;
    return n;
  }

  /// True if every device has a position of its own, and no position is left.
  constexpr bool valid() const {
    if (!fits_) return false;
    int all = 1, parts = 0;
    for (int a = 0; a < axes_; ++a) {
      all *= extent(a);
      parts += places_[std::size_t(a)].count;
    }
    if (parts > torus_group::max_rings) return false;
    for (int dim = 0; dim < torus_.dims; ++dim)
      if (run(~0u, dim, 1) != torus_.extent(dim)) return false;
    return run(~0u, torus_part::cores, 1) == torus_.cores && all == torus_.devices();
  }

  /// True if valid and of these extents, as a plan that is priced on it requires.
  constexpr bool fits(list_view<int> extents) const {
    bool same = valid() && extents.size() == std::size_t(axes_);
    for (int a = 0; same && a < axes_; ++a) same = extents[std::size_t(a)] == extent(a);
    return same;
  }

  /// The position of a device. Devices are numbered row-major over the axes.
  constexpr torus_place place(int device) const {
    torus_place to;
    for (int a = axes_; a-- > 0;) {
      const axis& parts = places_[std::size_t(a)];
      int rest = device % extent(a);
      device /= extent(a);
      for (int i = parts.count; i-- > 0;) {
        const torus_part& p = parts.parts[std::size_t(i)];
        int digit = rest % p.extent;
        rest /= p.extent;  // the number of the row: a snake reverses every other row
        if (parts.snake && rest % 2 == 1) digit = p.extent - 1 - digit;
        (p.dim == torus_part::cores ? to.core : to.at[std::size_t(p.dim)]) += digit * p.stride;
      }
    }
    return to;
  }
  /// The chip of a device, row-major.
  constexpr int chip(int device) const {
    const torus_place at = place(device);
    int chip = 0;
    for (int d = 0; d < torus_.dims; ++d) chip = chip * torus_.extent(d) + at.at[std::size_t(d)];
    return chip;
  }
  constexpr int hops(int from, int to) const {
    const torus_place a = place(from), b = place(to);
    int n = 0;
    for (int d = 0; d < torus_.dims; ++d) n += torus_.hops(d, a.at[std::size_t(d)], b.at[std::size_t(d)]);
    return n;
  }

  /// The group of the devices that differ in the axes of a mask.
  constexpr torus_group group(std::uint32_t axes) const {
    torus_group g;
    for (int dim = 0; dim < torus_.dims; ++dim) {
      const int whole = torus_.extent(dim);
      for_each_run(axes, dim, whole,
                   [&](int n, int stride) { g.add({n, stride, torus_.wrap[std::size_t(dim)] && stride * n == whole, dim}); });
    }
    for_each_run(axes, torus_part::cores, torus_.cores, [&](int n, int) { g.cores *= n; });
    g.sharers = torus_.cores / g.cores;
    return g;
  }

  /// The most hops from a device of a group to the next, in mesh order. The first device follows the last.
  constexpr int ring_hops(std::uint32_t axes) const {
    int most = 0, n = 1;
    const auto step_from = [&](int i, int to) {
      const int h = hops(member(axes, i), member(axes, to));
      if (h > most) most = h;
    };
    for (int a = axes_; a-- > 0;)
      for (int i = ((axes >> a) & 1u) ? places_[std::size_t(a)].count : 0; i-- > 0;) {
        step_from(n - 1, n);  // the first step along this part: all its steps are equal
        n *= places_[std::size_t(a)].parts[std::size_t(i)].extent;
      }
    step_from(n - 1, 0);
    return most;
  }

  /// Seconds of a collective between the devices that differ in the axes of a mask: its launch, and the time of the links. Each device
  /// receives `bytes_received`. The extents must be those of the mesh. All groups run at once. Each of n devices receives V(n-1)/n in a
  /// gather or a reduce_scatter, twice that in an all_reduce, and S(n-1)/n in an all_to_all. A permute along one axis passes everything to
  /// the next device; along several axes it may be any permutation. A looped einsum passes blocks around a ring, one step after the other.
  /// @see fits, all_gather_seconds, all_to_all_seconds
  constexpr double seconds(op_ref kind, std::uint32_t axes, const extents&, std::int64_t bytes_received) const {
    if (bytes_received <= 0) return 0;
    const torus_group g = group(axes);
    const double received = double(bytes_received), n = g.devices(), whole = n > 1 ? received * n / (n - 1) : received;
    if (g.count == 0) return torus_.launch + received / torus_.core_bytes;
    if (kind == op::all_gather) return torus_.launch + all_gather_seconds(torus_, g, whole, torus_.gather);
    if (kind == op::reduce_scatter) return torus_.launch + reduce_scatter_seconds(torus_, g, whole, torus_.gather);
    if (kind == op::all_reduce) return torus_.launch + all_reduce_seconds(torus_, g, whole / 2, torus_.gather);
    if (kind == op::looped_einsum) return torus_.launch + (n - 1) * shift_seconds(torus_, g, received / (n - 1), ring_hops(axes));
    if (kind == op::collective_permute)
      return torus_.launch + ((axes & (axes - 1)) == 0 ? shift_seconds(torus_, g, received, ring_hops(axes))
                                                       : permutation_seconds(torus_, g, received));
    return torus_.launch + all_to_all_seconds(torus_, g, whole, torus_.exchange, torus_.ties);
  }
};

}}  // namespace gshard::v0

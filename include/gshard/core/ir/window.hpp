// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Windows: the elements of one dim that the indices of another dim read, as in slice, pad, reverse, roll, pooling and convolution.

#include <gshard/core/base/interval.hpp>

#include <cstdint>

namespace gshard { inline namespace v0 {

/// One element of a permutation: index `target` reads element `source`.
struct device_pair {
  int source = 0, target = 0;
  constexpr bool operator==(const device_pair&) const = default;
};

/// Pairs in static storage. Backwards, index `source` reads element `target`.
struct pair_list {
  const device_pair* data = nullptr;
  int count = 0;
  bool backwards = false;

  constexpr bool empty() const { return count == 0; }
  /// The element that an index reads, or -1.
  constexpr std::int64_t source_of(std::int64_t index) const {
    for (const device_pair* p = data; p != data + count; ++p)
      if ((backwards ? p->source : p->target) == index) return backwards ? p->target : p->source;
    return -1;
  }
  constexpr pair_list inverse() const { return {data, count, !backwards}; }
  constexpr bool operator==(const pair_list&) const = default;
};

/// The elements of one dim that the indices of another read. For every tap k < taps, index i reads position p = stride * i + low + step *
/// k. That is element p / dilation, if it is an integer and inside the dim (wrap: modulo its extent); otherwise nothing.
///
/// One form serves all: a slice is {stride, low = start}, padding {low = -pad}, padding between elements {dilation}, reversal
/// {stride = -1, low = extent - 1}, a convolution {stride, low = -pad, taps, step = window dilation, dilation = base dilation}. A window
/// with pairs has no other numbers.
struct bound_window {
  std::int64_t stride = 1, low = 0, taps = 1, step = 1, dilation = 1;
  bool wrap = false;
  pair_list pairs{};

  constexpr std::int64_t position(std::int64_t i, std::int64_t k = 0) const {
    return pairs.empty() ? stride * i + low + step * k : pairs.source_of(i);
  }
  /// The inverse window: element j is read by the indices of this window, at the same taps.
  constexpr bound_window inverse() const {
    if (stride < 0) return {-dilation, low, taps, step, -stride, wrap};
    return {dilation, -low, taps, -step, stride, wrap};
  }
  constexpr bool operator==(const bound_window&) const = default;
};

/// The elements of a dim of `extent` that the indices of `block` read, from the first to the last. With wrap the first is
/// inside the dim, and the last may be beyond its extent: element e is then element e - extent.
constexpr interval reach(const bound_window& w, const interval& block, std::int64_t extent) {
  if (block.size() <= 0 || w.taps <= 0 || extent <= 0) return {};
  if (!w.pairs.empty()) {
    interval r;
    for (std::int64_t i = block.begin; i < block.end; ++i) {
      const std::int64_t p = w.position(i);
      if (p < 0 || p >= extent) continue;
      r = r.size() > 0 ? interval{p < r.begin ? p : r.begin, p < r.end ? r.end : p + 1} : interval{p, p + 1};
    }
    return r;
  }
  const std::int64_t spread = w.step * (w.taps - 1);
  const std::int64_t first = w.position(w.stride < 0 ? block.end - 1 : block.begin) + (spread < 0 ? spread : 0);
  const std::int64_t last = w.position(w.stride < 0 ? block.begin : block.end - 1) + (spread > 0 ? spread : 0);
  const auto floor = [](std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && a < 0); };
  interval r{-floor(-first, w.dilation), floor(last, w.dilation) + 1};
  if (w.wrap) {
    const std::int64_t back = extent * floor(r.begin, extent);
    return {r.begin - back, r.end - back};
  }
  if (r.begin < 0) r.begin = 0;
  if (r.end > extent) r.end = extent;
  return r.begin < r.end ? r : interval{};
}

/// A window of a program. Its numbers may be extents, which are known when the program is bound.
struct window {
  static constexpr std::int16_t none = -1;

  std::int16_t over = none;        // the dim whose indices read
  std::int16_t stride_dim = none;  // the stride is its extent
  std::int16_t low_dim = none;     // plus_low * its extent is added to low
  std::int16_t taps_dim = none;    // the number of taps is its extent
  std::int8_t plus_low = 0;
  bool wrap = false;
  std::int32_t stride = 1, low = 0, step = 1, dilation = 1;
  pair_list pairs{};

  template <class Extents>
  constexpr bound_window bind(const Extents& e) const {
    return {stride_dim == none ? stride : e.dim(stride_dim), low + (low_dim == none ? 0 : plus_low * e.dim(low_dim)),
            taps_dim == none ? 1 : e.dim(taps_dim), step, dilation, wrap, pairs};
  }
  /// The inverse window: the indices of `over` that read the elements of a dim. Not for windows whose stride is an extent.
  constexpr window inverse(int read_dim) const {
    window w = *this;
    w.over = std::int16_t(read_dim);
    const int sign = stride > 0 ? -1 : 1;
    w.stride = -sign * dilation;
    w.dilation = -sign * stride;
    w.low = sign * low;
    w.plus_low = std::int8_t(sign * plus_low);
    w.step = sign * step;
    w.pairs = pairs.inverse();
    return w;
  }
  /// The same reads as a window of the taps: tap k reads the elements that the indices read at tap k. The indices become the taps. Not for
  /// windows whose stride is an extent.
  constexpr window by_taps() const {
    window w = *this;
    w.over = taps_dim;
    w.taps_dim = over;
    w.stride = step;
    w.step = stride;
    return w;
  }
  constexpr bool operator==(const window&) const = default;
};

}}  // namespace gshard::v0

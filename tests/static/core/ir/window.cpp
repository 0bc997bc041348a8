// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/ir/window.hpp>

#include <cstdint>
#include <initializer_list>

namespace gs = gshard;
using gs::bound_window;
using gs::interval;
using gs::reach;

namespace {

// Slices, padding, reversal, steps, rotation.
static_assert(reach({}, {2, 5}, 8) == interval{2, 5});
static_assert(reach({.low = 3}, {0, 4}, 8) == interval{3, 7});
static_assert(reach({.stride = 2, .low = 1}, {1, 4}, 8) == interval{3, 8});
static_assert(reach({.low = -2}, {0, 6}, 8) == interval{0, 4} && reach({.low = -2}, {8, 12}, 8) == interval{6, 8});
static_assert(reach({.low = -2}, {0, 2}, 8) == interval{} && reach({.low = -2}, {10, 12}, 8) == interval{});
static_assert(reach({.low = -1, .dilation = 3}, {0, 8}, 8) == interval{0, 3} && reach({.low = -1, .dilation = 3}, {2, 4}, 8) == interval{});
static_assert(reach({.stride = -1, .low = 7}, {0, 3}, 8) == interval{5, 8});
static_assert(reach({.low = -3, .wrap = true}, {0, 4}, 8) == interval{5, 9});
static_assert(reach({.low = 3, .wrap = true}, {4, 8}, 8) == interval{7, 11});
// Convolutions: same size, strided with a dilated window.
static_assert(reach({.low = -1, .taps = 3}, {0, 4}, 8) == interval{0, 5} && reach({.low = -1, .taps = 3}, {4, 8}, 8) == interval{3, 8});
static_assert(reach({.stride = 2, .low = -2, .taps = 3, .step = 2}, {2, 4}, 16) == interval{2, 9});
// Nothing is read by no indices, through no taps, or from no elements.
static_assert(reach({}, {3, 3}, 8) == interval{} && reach({.taps = 0}, {0, 4}, 8) == interval{} && reach({}, {0, 4}, 0) == interval{});

template <class F>
constexpr bool all_windows(F right) {
  for (int stride : {-3, -1, 1, 2, 3})
    for (int low : {-3, 0, 2})
      for (int taps : {1, 2, 3})
        for (int step : {-1, 1, 2})
          for (int dilation : {1, 2, 3})
            for (bool wrap : {false, true})
              if (!right(bound_window{stride, low, taps, step, dilation, wrap})) return false;
  return true;
}

constexpr bool is_read_at(const bound_window& w, std::int64_t position, const interval& block) {
  for (std::int64_t i = block.begin; i < block.end; ++i)
    for (std::int64_t k = 0; k < w.taps; ++k)
      if (w.stride * i + w.low + w.step * k == position) return true;
  return false;
}

// The hull of the elements that are read, by visiting every position. `dense`: no position between the first and the last is left out.
constexpr interval hull(const bound_window& w, const interval& block, std::int64_t extent, bool& dense) {
  constexpr std::int64_t far = 24;
  interval h, positions;
  std::int64_t found = 0;
  for (std::int64_t p = -far; p <= far; ++p) {
    if (!is_read_at(w, p, block)) continue;
    positions = {found++ == 0 ? p : positions.begin, p + 1};
    if (p % w.dilation != 0) continue;
    const std::int64_t q = p / w.dilation;
    if (w.wrap || (q >= 0 && q < extent)) h = {h.size() == 0 ? q : h.begin, q + 1};
  }
  dense = found == positions.size();
  return h;
}
constexpr bool is_hull(const bound_window& w, const interval& block, std::int64_t extent) {
  bool dense = false;
  const interval r = reach(w, block, extent);
  interval h = hull(w, block, extent, dense);
  // A wrapping window begins inside the dim.
  while (w.wrap && h.size() > 0 && h.begin < 0) h = h.shifted(extent);
  while (w.wrap && h.begin >= extent) h = h.shifted(-extent);
  if (h.size() == 0) return !dense || w.wrap || r == h;
  if (dense) return r == h;
  const interval later = w.wrap ? h.shifted(extent) : h;
  return (r.begin <= h.begin && h.end <= r.end) || (r.begin <= later.begin && later.end <= r.end);
}
static_assert(all_windows([](const bound_window& w) { return is_hull(w, {0, 1}, 5) && is_hull(w, {2, 5}, 5) && is_hull(w, {-2, 1}, 1); }));

// i reads j at tap k exactly if the inverse says that j is read by i.
constexpr bool is_inverse(const bound_window& w) {
  const bound_window v = w.inverse();
  for (std::int64_t i = -4; i <= 4; ++i)
    for (std::int64_t j = -4; j <= 4; ++j)
      for (std::int64_t k = 0; k < w.taps; ++k)
        if ((w.position(i, k) == j * w.dilation) != (v.position(j, k) == i * v.dilation)) return false;
  return v.dilation > 0 && v.inverse() == w;
}
static_assert(all_windows(is_inverse));

// Taps and indices are swapped: the same positions are read.
constexpr bool reads_the_same(const bound_window& w) {
  const gs::window given{.over = 0, .taps_dim = 1, .wrap = w.wrap, .stride = std::int32_t(w.stride), .low = std::int32_t(w.low),
                         .step = std::int32_t(w.step), .dilation = std::int32_t(w.dilation)};
  const auto bind = [](const gs::window& v) { return bound_window{v.stride, v.low, 1, v.step, v.dilation, v.wrap}; };
  for (std::int64_t i = -4; i <= 4; ++i)
    for (std::int64_t k = 0; k < 4; ++k)
      if (bind(given).position(i, k) != bind(given.by_taps()).position(k, i)) return false;
  return given.by_taps().over == 1 && given.by_taps().taps_dim == 0 && given.by_taps().by_taps() == given;
}
static_assert(all_windows(reads_the_same));

// Base dilation: the three cases of arXiv 2006.16668, A.4, with `count` indices on each of 4 devices. The paper's padding of a shard before
// its first element is the distance from the first position to the next element.
constexpr bool same_padding(std::int64_t stride, std::int64_t dilation, std::int64_t count) {
  const bound_window w{.stride = stride, .low = -2, .taps = 3, .dilation = dilation};
  bool same = true;
  for (std::int64_t device = 0; device < 4; ++device) same = same && (w.position(device * count) - w.position(0)) % dilation == 0;
  return same;
}
constexpr bool is_dilated(std::int64_t stride, std::int64_t dilation, std::int64_t count) {
  const bound_window w{.stride = stride, .low = -2, .taps = 3, .dilation = dilation};
  for (std::int64_t device = 0; device < 4; ++device)
    if (!is_hull(w, {device * count, (device + 1) * count}, 6)) return false;
  return true;
}
// 1. stride * count is a multiple of the dilation: all shards have the same padding, and their regions have equal distances.
static_assert(same_padding(2, 3, 3) && is_dilated(2, 3, 3) && same_padding(1, 2, 4) && is_dilated(1, 2, 4));
static_assert(reach({.taps = 3, .dilation = 2}, {4, 8}, 99) == interval{2, 5} &&
              reach({.taps = 3, .dilation = 2}, {8, 12}, 99) == interval{4, 7});
// 2. It is not, and the stride is 1: padding and the regions' sizes differ.
static_assert(!same_padding(1, 3, 4) && is_dilated(1, 3, 4));
static_assert(reach({.taps = 3, .dilation = 3}, {0, 4}, 99) == interval{0, 2} &&
              reach({.taps = 3, .dilation = 3}, {4, 8}, 99) == interval{2, 4} &&
              reach({.taps = 3, .dilation = 3}, {8, 12}, 99) == interval{3, 5} && reach({.dilation = 3}, {4, 8}, 99) == interval{2, 3});
// 3. It is not, with any other stride.
static_assert(!same_padding(2, 3, 2) && is_dilated(2, 3, 2));
static_assert(reach({.stride = 2, .taps = 3, .dilation = 3}, {0, 2}, 99) == interval{0, 2} &&
              reach({.stride = 2, .taps = 3, .dilation = 3}, {2, 4}, 99) == interval{2, 3} &&
              reach({.stride = 2, .taps = 3, .dilation = 3}, {4, 6}, 99) == interval{3, 5});

// Pairs: an index reads the source of the pair with this target, or nothing. A block reads from the first source to the last.
constexpr gs::device_pair swaps[]{{0, 3}, {3, 1}, {2, 2}};
constexpr bound_window permuted{.pairs = {swaps, 3}}, back{.pairs = gs::pair_list{swaps, 3}.inverse()};
static_assert(permuted.position(3) == 0 && permuted.position(1) == 3 && permuted.position(2) == 2 && permuted.position(0) == -1);
static_assert(back.position(0) == 3 && back.position(3) == 1 && back.position(2) == 2 && back.position(1) == -1);
static_assert(reach(permuted, {3, 4}, 4) == interval{0, 1} && reach(permuted, {1, 3}, 4) == interval{2, 4});
static_assert(reach(permuted, {0, 1}, 4).size() == 0 && reach(permuted, {0, 4}, 4) == interval{0, 4});
static_assert(reach(permuted, {1, 2}, 3).size() == 0);  // source 3 is beyond the dim
static_assert(gs::window{.over = 1, .pairs = {swaps, 3}}.inverse(0).pairs == gs::pair_list{swaps, 3, true});

// Extents in a window are known when the program is bound.
struct extents {
  constexpr std::int64_t dim(int i) const { return 10 * (i + 1); }
};
static_assert(gs::window{}.bind(extents{}) == bound_window{});
static_assert(gs::window{.stride = 2, .low = 3, .step = 4, .dilation = 5}.bind(extents{}) ==
              bound_window{.stride = 2, .low = 3, .step = 4, .dilation = 5});
static_assert(gs::window{.stride_dim = 1, .low_dim = 0, .taps_dim = 2, .plus_low = -1, .wrap = true, .low = 1}.bind(extents{}) ==
              bound_window{.stride = 20, .low = -9, .taps = 30, .wrap = true});

}  // namespace

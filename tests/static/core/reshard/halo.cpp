// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/reshard/halo.hpp>
#include <gshard/ops/window/convolution.hpp>

#include <array>
#include <cstdint>

namespace gs = gshard;
using gs::detail::bytes_lacking, gs::detail::held, gs::detail::lacks_nothing, gs::detail::reads_its_block, gs::detail::reads_less;

namespace {

// Dim 0 has `extent` elements. Dim 1 has `windows` positions of 3 taps that begin one element earlier. One axis.
constexpr gs::extents sizes(std::int64_t extent, std::int64_t positions, int devices) {
  gs::extents e;
  e.dims = {extent, positions, 3};
  e.known_dims = {1, 1, 1};
  e.axes[0] = devices;
  e.known_axes = 1;
  return e;
}
constexpr gs::window around{.over = 1, .taps_dim = 2, .low = -1};
constexpr std::array<gs::window, 2> windows{gs::window{}, around};

constexpr gs::value line(bool windowed) {
  gs::value v;
  v.dims.push_back(0);
  v.layout = gs::sharding::replicated(1);
  v.layout[0].push_back(0);
  if (windowed) v.windows.push_back(1);
  return v;
}
constexpr gs::detail::mesh_place device(int i) { return {i}; }

static_assert(held(line(true), 0, windows, sizes(12, 12, 3), device(0)) == gs::interval{0, 5});
static_assert(held(line(true), 0, windows, sizes(12, 12, 3), device(1)) == gs::interval{3, 9});
static_assert(held(line(true), 0, windows, sizes(12, 12, 3), device(2)) == gs::interval{7, 12});
// One element from each side.
static_assert(bytes_lacking(line(false), line(true), windows, sizes(12, 12, 3)) == 2 * 4);
static_assert(gs::shard_elements(line(true), windows, sizes(12, 12, 3)) == 6 &&
              gs::shard_elements(line(false), windows, sizes(12, 12, 3)) == 4);
// A step that moves two tensors: the elements of both that one device lacks.
constexpr std::int64_t received(int tensors, int devices) {
  const gs::value values[] = {line(false), line(true)};
  gs::node n;
  n.kind = gs::op::collective_permute;
  n.attr.axes = 1;
  for (int i = 0; i < tensors; ++i) {
    n.in[n.inputs++] = 0;
    n.out[n.outputs++] = 1;
  }
  return gs::bytes_received(n, gs::list_view<gs::value>(values, 2), windows, sizes(12, 12, devices));
}
static_assert(received(1, 3) == 8 && received(1, 1) == 0 && received(2, 3) == 16);

// Merged dims: if blocks have one size, blocks of the first dim are blocks of both.
constexpr gs::window merged{.over = 1, .stride_dim = 2, .taps_dim = 2};
constexpr bool same_blocks(std::int64_t first, int devices) {
  gs::short_list axis;
  axis.push_back(0);
  return reads_its_block(merged, 0, axis, sizes(3 * first, first, devices));
}
static_assert(same_blocks(4, 2) && same_blocks(4, 4) && !same_blocks(5, 2) && !same_blocks(2, 4));
// With unknown extents: false.
constexpr bool unknown() {
  gs::extents e = sizes(12, 4, 2);
  e.known_axes = 0;
  gs::short_list axis;
  axis.push_back(0);
  return reads_its_block(merged, 0, axis, e);
}
static_assert(!unknown());

// From a replicated dim to the elements of a block's windows: nothing is lacking, if all extents are known.
constexpr bool from_whole(const gs::extents& e) {
  gs::value whole = line(false);
  whole.layout = gs::sharding::replicated(1);
  return lacks_nothing(whole, line(true), windows, {}, e);
}
static_assert(from_whole(sizes(12, 12, 3)) && !from_whole(sizes(12, 12, 17)) &&
              !lacks_nothing(line(false), line(true), windows, {}, sizes(12, 12, 3)));
static_assert([] {
  gs::extents e = sizes(12, 12, 3);
  e.known_dims[2] = 0;
  return !from_whole(e);
}());
// 4 positions of 3 taps, the first one before the start, read 5 elements.
static_assert(reads_less(around, 0, sizes(12, 4, 1)) && !reads_less(around, 0, sizes(5, 4, 1)));

// Sharded by the taps: 3 taps, from one element before each of 10 positions. The first device has 2 taps.
constexpr std::array<gs::window, 2> by_taps{gs::window{}, around.by_taps()};
static_assert(held(line(true), 0, by_taps, sizes(12, 10, 2), device(0)) == gs::interval{0, 10});
static_assert(held(line(true), 0, by_taps, sizes(12, 10, 2), device(1)) == gs::interval{1, 11});
static_assert(held(line(true), 0, by_taps, sizes(12, 10, 4), device(3)) == gs::interval{});

// If taps are known to outnumber positions, the factor of the taps.
constexpr int factor(int taps_are, bool known) {
  gs::node n;
  n.kind = gs::op::convolution;
  n.inputs = 2;
  n.rule.in[0].push_back(0);
  n.rule.windows.push_back(1);
  n.attr.dims.push_back(2);
  gs::extents e = sizes(8, 4, 1);
  e.dims[2] = taps_are;
  e.known_dims[2] = known;
  return gs::detail::longer_factors(n, 0, windows, e)[0];
}
static_assert(factor(5, true) == 1 && factor(4, true) == 0 && factor(5, false) == 0);

}  // namespace

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/reshard/halo.hpp>

#include <doctest/doctest.h>

#include <cstdint>

namespace gs = gshard;

namespace {

/// The indices of dim 1 read dim 0 through a window, whose taps or stride are the extent of dim 2. One axis.
gs::extents sizes(std::int64_t extent, std::int64_t positions, std::int64_t third, int devices) {
  gs::extents e;
  e.dims = {extent, positions, third};
  e.known_dims = {1, 1, 1};
  e.axes[0] = devices;
  e.known_axes = 1;
  return e;
}
gs::short_list first_axis() {
  gs::short_list axis;
  axis.push_back(0);
  return axis;
}

/// True if on every device of the axis, the indices of dim 1 read exactly the block of dim 0.
bool every_device_reads_its_block(const gs::window& w, const gs::extents& e) {
  for (int device = 0; device < e.axis(0); ++device) {
    const gs::detail::mesh_place at{device};
    const gs::interval block = gs::block_of(e.dim(0), first_axis(), e.axes, at),
                       read = gs::reach(w.bind(e), gs::block_of(e.dim(1), first_axis(), e.axes, at), e.dim(0));
    if (block != read && (block.size() != 0 || read.size() != 0)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("reads_its_block: only if it holds on every device, however long the axis, and always along a short one") {
  const gs::window windows[] = {{.over = 1},
                                {.over = 1, .low = 1},
                                {.over = 1, .wrap = true},
                                {.over = 1, .stride_dim = 2, .taps_dim = 2},
                                {.over = 1, .taps_dim = 2}};
  int found = 0;
  for (const int devices : {1, 2, 3, 7, 16, 17, 18, 23, 32, 33})
    for (std::int64_t positions = 1; positions <= 40; ++positions)
      for (const std::int64_t third : {1, 3})
        for (const gs::window& w : windows)
          for (std::int64_t extent = third * positions - 2; extent <= third * positions + 2; ++extent) {
            if (extent < 1) continue;
            const gs::extents e = sizes(extent, positions, third, devices);
            const bool said = gs::detail::reads_its_block(w, 0, first_axis(), e), is = every_device_reads_its_block(w, e);
            found += said;
            const bool right = said == is || (!said && devices > gs::detail::all_of);  // along a long axis it may be unknown
            if (!right) {
              CAPTURE(devices);
              CAPTURE(positions);
              CAPTURE(extent);
              CHECK(said == is);
            }
          }
  CHECK(found > 1000);
}

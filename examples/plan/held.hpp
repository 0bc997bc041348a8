// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "request.hpp"

#include <gshard/core/base/interval.hpp>
#include <gshard/core/ir/device_order.hpp>
#include <gshard/core/ir/window.hpp>
#include <gshard/exec/backend/device_group.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

// The indices of a tensor's dims that each device holds.
namespace planning { namespace detail {

/// The interval of indices that a device holds, for every dim.
using holding = std::array<gs::interval, gs::max_rank>;

/// The axes over which a tensor has halos: devices hold other indices of a dim than their block, as windows read them.
inline std::uint32_t axes_of_halos(const gs::value& v) {
  std::uint32_t axes = 0;
  for (int d = 0; d < v.windows.size(); ++d)
    if (v.windows[d] != 0) axes |= v.layout[d].mask();
  return axes;
}

/// The indices of a tensor on a device: its blocks, or the indices that windows read for its blocks of other dims.
inline holding held(const planned& p, const gs::value& v, int device) {
  const std::span<const int> mesh = extents_of(p.tables.mesh);
  const gs::device_orders orders{p.tables.orders, gs::device_count(mesh)};
  const auto at = gs::coordinates_of(mesh, orders.position(v.layout.order, device));
  holding h{};
  for (int d = 0; d < v.rank(); ++d) {
    const std::int64_t extent = p.sizes.dim(v.dims[d]);
    gs::interval& has = h[std::size_t(d)] = gs::block_of(extent, v.layout[d], mesh, at);
    if (v.windows.empty() || v.windows[d] == 0) continue;
    const gs::window& w = p.tables.windows[std::size_t(v.windows[d])];
    has = gs::reach(w.bind(p.sizes), gs::block_of(p.sizes.dim(w.over), v.layout[d], mesh, at), extent);
  }
  return h;
}

/// The number of common indices of `has` and `wanted`. `wanted` may go beyond the end of the dim and continue at its begin.
inline std::int64_t overlap(const gs::interval& has, const gs::interval& wanted, std::int64_t extent) {
  const std::int64_t n = has.common(wanted).size();
  return wanted.end > extent ? n + has.shifted(extent).common(wanted).size() : n;
}

}}  // namespace planning::detail

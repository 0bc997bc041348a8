// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Device orders: permutations of a mesh's devices in which shards are placed.

#include <gshard/core/base/list.hpp>
#include <gshard/core/base/list_view.hpp>

#include <cstddef>

namespace gshard { inline namespace v0 {

/// The device orders of a program other than the mesh's own, a row each. Entry i of row k - 1 is the device that order k places at
/// position i of the mesh. Order 0 is the mesh's own.
struct device_orders {
  list_view<int> rows{};
  int devices = 0;

  constexpr list_view<int> operator[](int order) const {
    return {rows.data() + std::size_t(order - 1) * std::size_t(devices), std::size_t(devices)};
  }
  /// The position of a device in an order.
  constexpr int position(int order, int device) const {
    if (order == 0) return device;
    const list_view<int> row = (*this)[order];
    int i = 0;
    while (row[std::size_t(i)] != device) ++i;
    return i;
  }
};

/// True if a list has every device exactly once.
constexpr bool is_order(list_view<int> row, int devices) {
  if (row.size() != std::size_t(devices)) return false;
  for (int d = 0; d < devices; ++d) {
    bool found = false;
    for (const int x : row) found = found || x == d;
    if (!found) return false;
  }
  return true;
}

/// The devices of a mesh by position, if positions are row-major over the axes in this order, from the outermost to the innermost. Devices
/// are row-major over the axes of the mesh.
constexpr list<int> devices_in_order(list_view<int> extents, list_view<int> axes) {
  list<int> stride(extents.size(), 1), devices;
  int n = 1;
  for (std::size_t a = extents.size(); a-- > 0;) {
    stride[a] = n;
    n *= extents[a];
  }
  for (int position = 0; position < n; ++position) {
    int device = 0, rest = position;
    for (std::size_t k = axes.size(); k-- > 0;) {
      const auto a = std::size_t(axes[k]);
      device += rest % extents[a] * stride[a];
      rest /= extents[a];
    }
    devices.push_back(device);
  }
  return devices;
}

}}  // namespace gshard::v0

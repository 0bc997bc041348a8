// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Device orders: permutations of a mesh's devices in which shards are placed.

#include <gshard/base/list_view.hpp>

#include <cstddef>

namespace gshard { inline namespace v0 {

/// The device orders of a program besides the mesh's own, a row each. Entry i of row k - 1 is the device that order k places at position i
/// of the mesh. Order 0 is the mesh's own.
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

}}  // namespace gshard::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/base/list_view.hpp>

#include <cstddef>

namespace gshard { inline namespace v0 {

/// Orders of the devices of a mesh besides its own, a row each: entry i of row k - 1 is the device that has, of a tensor in order k, what
/// the layout gives position i of the mesh. Order 0 is the mesh's own.
struct device_orders {
  list_view<int> rows{};
  int devices = 0;

  constexpr list_view<int> operator[](int order) const {
    return {rows.data() + std::size_t(order - 1) * std::size_t(devices), std::size_t(devices)};
  }
  /// Where a device stands.
  constexpr int position(int order, int device) const {
    if (order == 0) return device;
    const list_view<int> row = (*this)[order];
    int i = 0;
    while (row[std::size_t(i)] != device) ++i;
    return i;
  }
};

/// Whether a list has every device once.
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

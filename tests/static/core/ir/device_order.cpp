// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/ir/device_order.hpp>

#include <array>

namespace gs = gshard;

namespace {

// Two orders of three devices, in addition to their own.
constexpr std::array rows{2, 0, 1, 1, 0, 2};
constexpr gs::device_orders orders{rows, 3};
static_assert(orders.position(0, 2) == 2 && orders.position(1, 2) == 0 && orders.position(1, 0) == 1 && orders.position(2, 1) == 0);
static_assert(orders[2][0] == 1 && orders[2].size() == 3);

static_assert(gs::is_order(orders[1], 3) && !gs::is_order(orders[1], 4));
static_assert(!gs::is_order(std::array{0, 0, 1}, 3) && !gs::is_order(std::array{0, 1, 3}, 3) && !gs::is_order(std::array{0, 1, -1}, 3));

// Positions along the second axis first.
constexpr bool goes(const std::array<int, 2>& axes, const std::array<int, 6>& devices) {
  const gs::list<int> found = gs::devices_in_order(std::array{2, 3}, axes);
  bool same = found.size() == devices.size();
  for (std::size_t i = 0; i < devices.size(); ++i) same = same && found[i] == devices[i];
  return same;
}
static_assert(goes({1, 0}, {0, 3, 1, 4, 2, 5}) && goes({0, 1}, {0, 1, 2, 3, 4, 5}));

}  // namespace

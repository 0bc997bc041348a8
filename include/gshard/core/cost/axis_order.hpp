// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Chooses the order of a mesh's axes, so that a plan sends few bytes between nodes.

#include <gshard/core/base/list.hpp>
#include <gshard/core/base/list_view.hpp>
#include <gshard/core/cost/node_traffic.hpp>
#include <gshard/core/ir/device_order.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/core/reshard/cost.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 {

/// The order of the axes, from the outermost to the innermost, in which a plan sends the fewest bytes between nodes. Ties go to the first
/// order, and the order of the mesh is tried first. node[k]: the node of the process at position k. Processes of a node are successive.
/// @see devices_in_order, mpi_options::axis_order, bytes_between_nodes
constexpr list<int> axis_order(const plan_view& plan, const extents& e, list_view<int> node) {
  list<int> extents, order, best;
  for (int a = 0; a < plan.mesh.rank(); ++a) {
    extents.push_back(e.axis(a));
    order.push_back(a);
  }
  std::int64_t least = -1;
  const auto try_order = [&] {
    const list<int> devices = devices_in_order(extents, order);
    list<int> of_device(node.size(), 0);
    for (std::size_t k = 0; k < node.size(); ++k) of_device[std::size_t(devices[k])] = node[k];
    const std::int64_t bytes = bytes_between_nodes(plan, e, of_device);
    if (least >= 0 && bytes >= least) return;
    least = bytes;
    best = order;
  };
  for (;;) {  // all orders, ascending
    try_order();
    std::size_t i = order.size();
    while (i > 1 && order[i - 2] > order[i - 1]) --i;
    if (i <= 1) return best;
    std::size_t next = order.size() - 1;
    while (order[next] < order[i - 2]) --next;
    const auto swap = [&](std::size_t a, std::size_t b) {
      const int kept = order[a];
      order[a] = order[b];
      order[b] = kept;
    };
    swap(i - 2, next);
    for (std::size_t first = i - 1, last = order.size() - 1; first < last; ++first, --last) swap(first, last);
  }
}

}}  // namespace gshard::v0

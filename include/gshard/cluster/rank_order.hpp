// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Places the devices of a mesh on ranks, so that some axes are within nodes.

#include <gshard/core/ir/device_order.hpp>
#include <gshard/exec/backend/device_group.hpp>
#include <gshard/exec/process/error.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

inline std::string axis_order_text(std::span<const int> axes) {
  std::string s;
  for (const int a : axes) s += (s.empty() ? "" : ", ") + std::to_string(a);
  return s.empty() ? "none" : s;
}

/// Throws `gshard::error` unless `axes` are the axes of the mesh, each once.
inline void check_axis_order(std::span<const int> extents, std::span<const int> axes) {
  if (!is_order({axes.data(), axes.size()}, int(extents.size())))
    throw error("mpi_options::axis_order: " + axis_order_text(axes) + " is not an order of the " + std::to_string(extents.size()) +
                " axes of the mesh " + mesh_text(extents));
}

/// The ranks sorted by node, in the order of the nodes' first ranks. node[r]: the node of rank r.
inline std::vector<int> ranks_by_node(std::span<const int> node) {
  std::vector<int> first, ranks;
  for (std::size_t r = 0; r < node.size(); ++r) {
    first.push_back(int(std::ranges::find(node, node[r]) - node.begin()));
    ranks.push_back(int(r));
  }
  std::ranges::stable_sort(ranks, {}, [&](int r) { return first[std::size_t(r)]; });
  return ranks;
}

/// The rank of every device. by_position[k]: the rank at position k. Positions are row-major over the axes in this order.
/// @see devices_in_order
inline std::vector<int> ranks_by_device(std::span<const int> extents, std::span<const int> axes, std::span<const int> by_position) {
  const list<int> devices = devices_in_order({extents.data(), extents.size()}, {axes.data(), axes.size()});
  std::vector<int> ranks(by_position.size());
  for (std::size_t k = 0; k < ranks.size(); ++k) ranks[std::size_t(devices[k])] = by_position[k];
  return ranks;
}

/// what[r] for each rank r of a list.
inline std::vector<int> in_order_of(std::span<const int> what, std::span<const int> ranks) {
  std::vector<int> found;
  for (const int r : ranks) found.push_back(what[std::size_t(r)]);
  return found;
}

}}}  // namespace gshard::v0::detail

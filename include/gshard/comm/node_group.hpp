// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The members of a group by node, for collectives that communicate within nodes and between nodes.

#include <gshard/base/interval.hpp>
#include <gshard/comm/backend.hpp>
#include <gshard/comm/sum_order.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// A group of devices by node, and the order of its sums. If all members are on one node, or no two are, every member counts as a node of
/// its own: then there is one level.
class node_group {
 public:
  node_group(const backend& b, std::uint32_t axes, int device) {
    const device_group group(b.extents(), axes, device);
    const node_map& map = b.nodes();
    std::vector<int> known;  // nodes, as the backend numbers them
    for (int m = 0; m < group.size(); ++m) {
      const int node = map.node.empty() ? 0 : map.node[std::size_t(group.device(m))];
      const auto at = std::size_t(std::ranges::find(known, node) - known.begin());
      if (at == known.size()) {
        known.push_back(node);
        members_.emplace_back();
      }
      node_.push_back(at);
      place_.push_back(members_[at].size());
      members_[at].push_back(std::size_t(m));
    }
    me_ = std::size_t(group.member());
    order_ = order(map.sums);
    if (members_.size() == 1 || !map.levels) {
      members_.clear();
      for (std::size_t m = 0; m < node_.size(); ++m) {
        node_[m] = m;
        place_[m] = 0;
        members_.push_back({m});
      }
    }
    const std::vector<int> owner(node_.begin(), node_.end());
    parts_ = order_.split(owner);
    parts_of_.resize(members_.size());
    for (std::size_t k = 0; k < parts_.all.size(); ++k) parts_of_[std::size_t(parts_.all[k].owner)].push_back(k);
  }

  /// The members of the group, and this device's number among them.
  std::size_t size() const { return node_.size(); }
  std::size_t me() const { return me_; }
  /// The number of nodes, and that of this device's node.
  std::size_t nodes() const { return members_.size(); }
  std::size_t here() const { return node_[me_]; }
  std::size_t node(std::size_t member) const { return node_[member]; }
  /// The members on a node, ascending; and the index of a member in the list of its node.
  const std::vector<std::size_t>& members(std::size_t node) const { return members_[node]; }
  std::size_t place(std::size_t member) const { return place_[member]; }
  /// The members on this device's node, itself included.
  const std::vector<std::size_t>& mates() const { return members_[here()]; }
  bool has_mates() const { return mates().size() > 1; }

  /// Member k of n, which share elements evenly, gets these.
  static interval share(std::int64_t elements, std::size_t k, std::size_t n) {
    return {elements * std::int64_t(k) / std::int64_t(n), elements * std::int64_t(k + 1) / std::int64_t(n)};
  }
  /// The share of a member if the nodes share elements evenly, and the members of a node share those of the node.
  interval share(std::int64_t elements, std::size_t member) const {
    const interval of_node = share(elements, node_[member], nodes());
    return share(of_node.size(), place_[member], members_[node_[member]].size()).shifted(of_node.begin);
  }

  /// How the operands of the members are combined.
  const sum_order& order() const { return order_; }
  /// The partial sums that a node computes, and the order in which all of them are combined. A node has one if its members are one subtree.
  const sum_order::parts& parts() const { return parts_; }
  const std::vector<std::size_t>& parts_of(std::size_t node) const { return parts_of_[node]; }

 private:
  std::size_t me_ = 0;
  std::vector<std::size_t> node_, place_;          // by member
  std::vector<std::vector<std::size_t>> members_;  // by node
  sum_order order_;
  sum_order::parts parts_;
  std::vector<std::vector<std::size_t>> parts_of_;  // by node

  sum_order order(summation how) const {
    if (how == summation::by_member) return sum_order(size());
    std::size_t most = 1;
    for (const auto& m : members_) most = std::max(most, m.size());
    std::vector<std::uint32_t> positions;
    for (std::size_t m = 0; m < size(); ++m) positions.push_back(std::uint32_t(node_[m] * std::bit_ceil(most) + place_[m]));
    return sum_order(positions);
  }
};

/// The groups along some axes of all devices that a process holds, kept while the mesh stays the same.
class held_groups {
 public:
  void use(const backend& b, std::uint32_t axes) {
    const bool same = axes_ == axes && std::ranges::equal(extents_, b.extents()) && std::ranges::equal(devices_, b.devices());
    if (same && nodes_ == b.nodes() && !groups_.empty()) return;
    axes_ = axes;
    extents_.assign(b.extents().begin(), b.extents().end());
    devices_.assign(b.devices().begin(), b.devices().end());
    nodes_ = b.nodes();
    groups_.clear();
    for (const int device : devices_) groups_.emplace_back(b, axes, device);
  }
  std::uint32_t axes() const { return axes_; }
  std::size_t size() const { return groups_.size(); }
  const node_group& operator[](std::size_t device) const { return groups_[device]; }
  /// The number of members of each group.
  std::size_t members() const { return groups_[0].size(); }
  /// True if a group has several levels.
  bool have_levels() const {
    return std::ranges::any_of(groups_, [](const node_group& g) { return g.nodes() < g.size(); });
  }
  bool have_mates() const { return std::ranges::any_of(groups_, &node_group::has_mates); }

 private:
  std::uint32_t axes_ = 0;
  std::vector<int> extents_, devices_;
  node_map nodes_;
  std::vector<node_group> groups_;
};

}}}  // namespace gshard::v0::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The members of a group by node, for collectives that communicate within nodes and between nodes.

#include <gshard/core/base/interval.hpp>
#include <gshard/exec/backend/backend.hpp>
#include <gshard/exec/reduce/sum_order.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// A group of devices by node, and the order of its sums. If all members are on one node, or no two are, every member counts as a node of
/// its own, and there is one level.
class node_group {
 public:
  node_group(const backend& b, std::uint32_t axes, int device) : at_(b, axes, device) {
    const device_group group(b.extents(), axes, device);
    const node_map& map = b.nodes();
    me_ = std::size_t(group.member());
    order_ = map.sums == summation::by_member ? sum_order(size()) : by_node(members_by_node(b, axes, 0));
    is_on_nodes_ = nodes() > 1;
    if (nodes() == 1 || !map.levels) at_ = members_by_node(size());
    const std::vector<int> owner(at_.node.begin(), at_.node.end());
    parts_ = order_.split(owner);
    parts_of_.resize(nodes());
    for (std::size_t k = 0; k < parts_.all.size(); ++k) parts_of_[std::size_t(parts_.all[k].owner)].push_back(k);
  }

  /// The members of the group, and this device's number among them.
  std::size_t size() const { return at_.node.size(); }
  std::size_t me() const { return me_; }
  /// The number of nodes, and the index of this device's node.
  std::size_t nodes() const { return at_.members.size(); }
  std::size_t here() const { return at_.node[me_]; }
  std::size_t node(std::size_t member) const { return at_.node[member]; }
  /// The members on a node, ascending; and the index of a member in the list of its node.
  const std::vector<std::size_t>& members(std::size_t node) const { return at_.members[node]; }
  std::size_t place(std::size_t member) const { return at_.place[member]; }
  /// The members on this device's node, including itself.
  const std::vector<std::size_t>& mates() const { return at_.members[here()]; }
  bool has_mates() const { return mates().size() > 1; }

  /// True if not all members share a node, even if there is one level.
  bool is_on_nodes() const { return is_on_nodes_; }

  /// The elements of member k of n, if they share them in blocks of ceil(elements / n).
  static interval share(std::int64_t elements, std::size_t k, std::size_t n) {
    const std::int64_t block = (elements + std::int64_t(n) - 1) / std::int64_t(n), begin = std::min(elements, std::int64_t(k) * block);
    return {begin, std::min(elements, begin + block)};
  }

  /// The order in which the operands of the members are combined.
  const sum_order& order() const { return order_; }
  /// The partial sums of all nodes, and the order in which they are combined. A node has one if its members are one subtree.
  const sum_order::parts& parts() const { return parts_; }
  const std::vector<std::size_t>& parts_of(std::size_t node) const { return parts_of_[node]; }

 private:
  struct members_by_node {
    std::vector<std::size_t> node, place;           // by member
    std::vector<std::vector<std::size_t>> members;  // by node

    members_by_node(const backend& b, std::uint32_t axes, int device) {
      const device_group group(b.extents(), axes, device);
      const std::vector<int>& nodes = b.nodes().node;
      std::vector<int> known;  // nodes, as the backend numbers them
      for (int m = 0; m < group.size(); ++m) {
        const int number = nodes.empty() ? 0 : nodes[std::size_t(group.device(m))];
        const auto at = std::size_t(std::ranges::find(known, number) - known.begin());
        if (at == known.size()) {
          known.push_back(number);
          members.emplace_back();
        }
        node.push_back(at);
        place.push_back(members[at].size());
        members[at].push_back(std::size_t(m));
      }
    }
    /// Every member is a node of its own.
    explicit members_by_node(std::size_t n) : place(n, 0) {
      for (std::size_t m = 0; m < n; ++m) {
        node.push_back(m);
        members.push_back({m});
      }
    }
  };
  members_by_node at_;
  bool is_on_nodes_ = false;
  std::size_t me_ = 0;
  sum_order order_;
  sum_order::parts parts_;
  std::vector<std::vector<std::size_t>> parts_of_;  // by node

  /// All groups along the same axes use the order of the mesh's first group, because they may sum copies of one tensor.
  static sum_order by_node(const members_by_node& first) {
    std::size_t most = 1;
    for (const auto& m : first.members) most = std::max(most, m.size());
    std::vector<std::uint32_t> positions;
    for (std::size_t m = 0; m < first.node.size(); ++m)
      positions.push_back(std::uint32_t(first.node[m] * std::bit_ceil(most) + first.place[m]));
    return sum_order(positions);
  }
};

/// The groups along some axes of all devices that a process holds. Groups along axes that were used are kept while the mesh stays the same.
class held_groups {
 public:
  void use(const backend& b, std::uint32_t axes) {
    if (!std::ranges::equal(extents_, b.extents()) || !std::ranges::equal(devices_, b.devices()) || nodes_ != b.nodes()) {
      extents_.assign(b.extents().begin(), b.extents().end());
      devices_.assign(b.devices().begin(), b.devices().end());
      nodes_ = b.nodes();
      along_.clear();
    }
    const auto known = std::ranges::find(along_, axes, &groups::axes);
    used_ = std::size_t(known - along_.begin());
    if (known != along_.end()) return;
    groups& made = along_.emplace_back(groups{axes, {}});
    for (const int device : devices_) made.all.emplace_back(b, axes, device);
  }
  std::uint32_t axes() const { return along_[used_].axes; }
  std::size_t size() const { return all().size(); }
  const node_group& operator[](std::size_t device) const { return all()[device]; }
  /// The number of members of each group.
  std::size_t members() const { return all()[0].size(); }
  /// True if a group has several levels.
  bool have_levels() const {
    return std::ranges::any_of(all(), [](const node_group& g) { return g.nodes() < g.size(); });
  }
  bool are_on_nodes() const { return std::ranges::any_of(all(), &node_group::is_on_nodes); }
  bool have_mates() const { return std::ranges::any_of(all(), &node_group::has_mates); }

 private:
  struct groups {
    std::uint32_t axes = 0;
    std::vector<node_group> all;
  };
  std::vector<int> extents_, devices_;
  node_map nodes_;
  std::vector<groups> along_;
  std::size_t used_ = 0;

  const std::vector<node_group>& all() const { return along_[used_].all; }
};

}}}  // namespace gshard::v0::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Sums with replicas on several nodes: groups that would sum equal operands divide the elements among themselves.

#include <gshard/core/base/interval.hpp>
#include <gshard/exec/backend/backend.hpp>
#include <gshard/exec/backend/device_group.hpp>
#include <gshard/exec/reduce/node_group.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// The shares of the groups of a sum, if operands are replicated along other mesh axes. Groups of replicas on the same two or more nodes
/// sum a share of the elements each. Their members on a node then exchange the sums. Therefore a node sends and receives the sums once for
/// all these groups.
class replica_shares {
 public:
  /// No shares.
  replica_shares() = default;
  /// `axes`: the axes of the sum. `replicas`: the other axes along which operands and results are replicated.
  replica_shares(const backend& b, std::uint32_t axes, std::uint32_t replicas) : axes_(replicas) {
    for (const int device : b.devices()) {
      const device_group along(b.extents(), replicas, device);
      of_device& here = all_.emplace_back();
      std::set<std::vector<int>> known;
      const std::vector<int> mine = nodes_of(b, axes, device);
      for (int k = 0; k < along.size(); ++k) {
        const std::vector<int> other = nodes_of(b, axes, along.device(k));
        if (std::ranges::adjacent_find(other, std::ranges::not_equal_to()) == other.end()) continue;  // on one node
        any_ = !known.insert(other).second || any_;
        if (other != mine) continue;
        if (k == along.member()) here.place = here.members.size();
        here.members.push_back(std::size_t(k));
      }
      here.send.resize(std::size_t(along.size()));
      here.recv.resize(std::size_t(along.size()));
    }
    for (const of_device& d : all_) parts_.push_back({d.send, d.recv});
  }

  /// True if the replica groups of a held device have shares. The same on all devices of a group along `axes()`.
  bool any() const { return any_; }
  /// The axes along which operands are replicated.
  std::uint32_t axes() const { return axes_; }
  /// The members of held device i's group along `axes()` with which it exchanges sums, including itself, or none.
  std::span<const std::size_t> members(std::size_t i) const { return all_[i].members; }
  /// The share of held device i, and the number of shares.
  std::size_t place(std::size_t i) const { return all_[i].place; }
  std::size_t count(std::size_t i) const { return std::max<std::size_t>(1, all_[i].members.size()); }
  /// The elements of share k of n in the shard of held device i.
  interval elements(std::size_t i, std::size_t k, std::int64_t n) const { return node_group::share(n, k, count(i)); }

  /// Exchanges the shares within the nodes. data(i, k): the bytes of share k on held device i. Counts no traffic of blocks.
  template <class Data>
  void exchange(backend& b, std::uint32_t channel, Data data) {
    for (std::size_t i = 0; i < all_.size(); ++i)
      for (std::size_t k = 0; k < all_[i].members.size(); ++k) {
        if (k == all_[i].place) continue;
        all_[i].send[all_[i].members[k]] = data(i, all_[i].place);
        all_[i].recv[all_[i].members[k]] = data(i, k);
      }
    b.start(axes_, parts_, {.channel = channel}).finish();
  }

 private:
  struct of_device {
    std::vector<std::size_t> members;
    std::size_t place = 0;
    std::vector<std::span<const std::byte>> send;
    std::vector<std::span<std::byte>> recv;
  };
  std::uint32_t axes_ = 0;
  bool any_ = false;
  std::vector<of_device> all_;  // per held device
  std::vector<exchange_part> parts_;

  static std::vector<int> nodes_of(const backend& b, std::uint32_t axes, int device) {
    const device_group group(b.extents(), axes, device);
    std::vector<int> nodes;
    for (int m = 0; m < group.size(); ++m) nodes.push_back(b.nodes().node[std::size_t(group.device(m))]);
    return nodes;
  }
};

}}}  // namespace gshard::v0::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A hierarchical all-to-all for many small blocks: within each node, between nodes, and within each node again.

#include <gshard/exec/backend/backend.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

// For each pair of nodes, one member of either node is its relay. First, each member sends its blocks for another node to the relay on its
// own node. The relay then sends all these blocks in one packet to the relay on that node, which passes them on to its mates. Two nodes
// therefore exchange one packet each way.
namespace gshard { inline namespace v0 { namespace detail {

/// The error text of a member that receives an unexpected number of bytes.
inline std::string unexpected(int me, std::size_t members, std::size_t expected, int from, const std::string& what_it_did) {
  return "member " + std::to_string(me) + " of a group of " + std::to_string(members) + " expects " + std::to_string(expected) +
         " bytes from member " + std::to_string(from) + ", which " + what_it_did;
}

/// The routes of a group: for each pair of nodes, the relays. Each member of a node is the relay for about the same number of other nodes.
class node_routes {
 public:
  /// Another node.
  struct peer {
    std::vector<int> members;  // ascending
    int relay = 0;             // the member there that exchanges packets with this node
  };

  node_routes() = default;
  /// nodes[m]: the node of member m, as any number.
  node_routes(std::span<const int> nodes, int me) {
    std::vector<int> known;                 // numbers of nodes
    std::vector<std::vector<int>> members;  // by node
    std::size_t here = 0;
    for (std::size_t m = 0; m < nodes.size(); ++m) {
      const auto node = std::size_t(std::find(known.begin(), known.end(), nodes[m]) - known.begin());
      if (node == known.size()) {
        known.push_back(nodes[m]);
        members.emplace_back();
      }
      if (int(m) == me) {
        here = node;
        place_ = members[node].size();
      }
      members[node].push_back(int(m));
    }
    const std::size_t n = members.size();
    // The index of a node's relay for the k-th node after it, among the members of the node.
    const auto relay = [&](std::size_t on, std::size_t k) { return (k - 1) % members[on].size(); };
    mates_ = members[here];
    nodes_ = int(n);
    relayed_.resize(mates_.size());
    for (std::size_t k = 1; k < n; ++k) {
      const std::size_t other = (here + k) % n;
      relayed_[relay(here, k)].push_back(peers_.size());
      peers_.push_back({members[other], members[other][relay(other, n - k)]});
    }
    for (const std::vector<int>& of_node : members) {
      messages_ = std::max(messages_, int((n - 1 + of_node.size() - 1) / of_node.size()));
      most_mates_ = std::max(most_mates_, int(of_node.size()) - 1);
      most_members_ = std::max(most_members_, of_node.size());
    }
  }

  int nodes() const { return nodes_; }
  /// The most packets that any member of the group sends to other nodes.
  int messages() const { return messages_; }
  /// The most other members that any member has on its node.
  int most_mates() const { return most_mates_; }
  /// The most blocks of a packet.
  std::size_t most_blocks() const { return std::max(most_members_ * most_members_, 1 + std::size_t(messages_) * most_members_); }
  /// The members on this member's node, including itself, ascending.
  const std::vector<int>& mates() const { return mates_; }
  /// The index of this member in mates().
  std::size_t place() const { return place_; }
  /// The other nodes. relayed(k): the indices of the nodes for which the k-th member of this node is the relay.
  const std::vector<peer>& peers() const { return peers_; }
  const std::vector<std::size_t>& relayed(std::size_t k) const { return relayed_[k]; }
  /// The number of members of all nodes for which the k-th member of this node is the relay.
  std::size_t members_beyond(std::size_t k) const {
    std::size_t n = 0;
    for (const std::size_t o : relayed_[k]) n += peers_[o].members.size();
    return n;
  }

 private:
  int nodes_ = 0, messages_ = 0, most_mates_ = 0;
  std::size_t place_ = 0, most_members_ = 0;
  std::vector<int> mates_;
  std::vector<peer> peers_;
  std::vector<std::vector<std::size_t>> relayed_;
};

/// One message with several blocks: their sizes, then their bytes.
class packet {
 public:
  packet(int member, std::span<std::byte> room, std::size_t blocks) : member_(member), room_(room), end_(blocks * sizeof(size)) {}
  static std::size_t most_bytes(std::size_t blocks, std::int64_t block_bytes) { return blocks * (sizeof(size) + std::size_t(block_bytes)); }

  int member() const { return member_; }
  /// The bytes to send.
  std::span<const std::byte> bytes() const { return room_.first(end_); }
  /// The receive buffer. `arrived` sets the number of bytes received, 0 after an error.
  std::span<std::byte> room() const { return room_; }
  void arrived(std::size_t bytes) { length_ = bytes; }

  /// Appends a block. An empty optional marks a lost block.
  void put(std::optional<std::span<const std::byte>> block) {
    const size bytes = block ? size(block->size()) : lost;
    std::memcpy(room_.data() + next_++ * sizeof(size), &bytes, sizeof(size));
    if (!block) return;
    copy_bytes(room_.subspan(end_, block->size()), *block);
    end_ += block->size();
  }
  /// Extracts the next block; empty if it is lost.
  std::optional<std::span<const std::byte>> take() {
    size bytes = lost;
    if ((next_ + 1) * sizeof(size) <= length_) std::memcpy(&bytes, room_.data() + next_++ * sizeof(size), sizeof(size));
    if (bytes == lost || end_ + bytes > length_) return {};  // lost, or the message is truncated
    end_ += bytes;
    return room_.subspan(end_ - bytes, bytes);
  }

 private:
  using size = std::uint32_t;
  static constexpr size lost = ~size{0};

  int member_;
  std::span<std::byte> room_;
  std::size_t next_ = 0;    // index of the next block
  std::size_t end_;         // end of the bytes appended or extracted so far
  std::size_t length_ = 0;  // bytes received
};

/// The state of one member in a hierarchical exchange. The caller sends the packets: begin(); `to_mates` arrive as `from_mates`; gather();
/// `to_relays` arrive as `from_relays`; scatter(); `passed_on` arrive as `from_here`; deliver(). If a packet is lost, its blocks are marked
/// as lost here and at the receivers to which they should be forwarded. Keeps its memory for the next exchange.
class hierarchical_all_to_all {
 public:
  /// Packs the packets for mates. No block of any member may exceed `block_bytes`. The own block is not copied.
  void begin(const node_routes& routes, const exchange_part& part, std::int64_t block_bytes) {
    routes_ = &routes;
    part_ = part;
    mismatch_.clear();
    for (std::vector<packet>* packets : {&to_mates_, &from_mates_, &to_relays_, &from_relays_, &passed_on_, &from_here_}) packets->clear();
    const std::vector<int>& mates = routes.mates();
    const std::size_t here = routes.place(), beyond = routes.members_beyond(here);
    std::size_t bytes = 0;
    const auto count = [&](std::size_t blocks) { bytes += packet::most_bytes(blocks, block_bytes); };
    const auto each_mate = [&](auto f) {
      for (std::size_t k = 0; k < mates.size(); ++k)
        if (k != here) f(k);
    };
    each_mate([&](std::size_t k) {
      for (const std::size_t n : {beyond, routes.members_beyond(k)}) {
        count(1 + n);
        count(n);
      }
    });
    for (const std::size_t o : routes.relayed(here))
      for (int way = 0; way < 2; ++way) count(mates.size() * routes.peers()[o].members.size());
    if (memory_.size() < bytes) memory_.resize(bytes);
    std::byte* next = memory_.data();
    const auto add = [&](std::vector<packet>& packets, int member, std::size_t blocks) {
      if (blocks == 0) return;
      const std::size_t most = packet::most_bytes(blocks, block_bytes);
      packets.emplace_back(member, std::span(next, most), blocks);
      next += most;
    };
    each_mate([&](std::size_t k) {
      add(to_mates_, mates[k], 1 + routes.members_beyond(k));
      to_mates_.back().put(part.send[std::size_t(mates[k])]);
      for (const std::size_t o : routes.relayed(k))
        for (const int m : routes.peers()[o].members) to_mates_.back().put(part.send[std::size_t(m)]);
      add(from_mates_, mates[k], 1 + beyond);
      add(passed_on_, mates[k], beyond);
      add(from_here_, mates[k], routes.members_beyond(k));
    });
    for (const std::size_t o : routes.relayed(here)) {
      const node_routes::peer& other = routes.peers()[o];
      add(to_relays_, other.relay, mates.size() * other.members.size());
      add(from_relays_, other.relay, mates.size() * other.members.size());
    }
  }

  /// Unpacks the mates' blocks for this member, and packs their blocks for other nodes.
  void gather() {
    auto from = from_mates_.begin();
    for (const int mate : routes_->mates()) {
      const bool mine = mate == me();
      if (!mine) accept(mate, from->take());
      auto to = to_relays_.begin();
      for (const std::size_t o : routes_->relayed(routes_->place())) {
        for (const int m : routes_->peers()[o].members) to->put(mine ? part_.send[std::size_t(m)] : from->take());
        ++to;
      }
      if (!mine) ++from;
    }
  }

  /// Unpacks the packets from other nodes: blocks for this member, and blocks to pass on to mates.
  void scatter() {
    auto from = from_relays_.begin();
    for (const std::size_t o : routes_->relayed(routes_->place())) {
      for (const int m : routes_->peers()[o].members) {
        auto to = passed_on_.begin();
        for (const int mate : routes_->mates()) {
          if (mate == me()) accept(m, from->take());
          else (to++)->put(from->take());
        }
      }
      ++from;
    }
  }

  /// Unpacks the blocks from other nodes that mates have passed on. Returns an error text, or an empty string.
  const std::string& deliver() {
    auto from = from_here_.begin();
    for (std::size_t k = 0; k < routes_->mates().size(); ++k) {
      if (k == routes_->place() || routes_->relayed(k).empty()) continue;
      for (const std::size_t o : routes_->relayed(k))
        for (const int m : routes_->peers()[o].members) accept(m, from->take());
      ++from;
    }
    return mismatch_;
  }

  std::span<packet> to_mates() { return to_mates_; }
  std::span<packet> from_mates() { return from_mates_; }
  std::span<packet> to_relays() { return to_relays_; }
  std::span<packet> from_relays() { return from_relays_; }
  std::span<packet> passed_on() { return passed_on_; }
  std::span<packet> from_here() { return from_here_; }

 private:
  const node_routes* routes_ = nullptr;
  exchange_part part_;
  std::vector<std::byte> memory_;
  std::vector<packet> to_mates_, from_mates_, to_relays_, from_relays_, passed_on_, from_here_;
  std::string mismatch_;

  int me() const { return routes_->mates()[routes_->place()]; }
  void accept(int from, std::optional<std::span<const std::byte>> block) {
    const std::span<std::byte> to = part_.recv[std::size_t(from)];
    if (block && block->size() == to.size()) return copy_bytes(to, *block);
    mismatch_ = unexpected(me(), part_.recv.size(), to.size(), from, block ? "sent " + std::to_string(block->size()) : "cannot be heard");
  }
};

}}}  // namespace gshard::v0::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A hierarchical all-to-all for many small blocks: first within each node, then between nodes.

#include <gshard/comm/backend.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

// First, each member sends its blocks to members of its own node. Then these send all blocks of their node for a remote member in one
// packet. So a member sends one packet to each other member of its node, and about one to each other node.
namespace gshard { inline namespace v0 { namespace detail {

/// The error text of a member that receives an unexpected number of bytes.
inline std::string unexpected(int me, std::size_t members, std::size_t expected, int from, const std::string& what_it_did) {
  return "member " + std::to_string(me) + " of a group of " + std::to_string(members) + " expects " + std::to_string(expected) +
         " bytes from member " + std::to_string(from) + ", which " + what_it_did;
}

/// The routes of a group. For each remote member, one member of a node is its server: it forwards the node's blocks. The load is even.
class node_routes {
 public:
  node_routes() = default;
  /// nodes[m]: the node of member m, as any number.
  node_routes(std::span<const int> nodes, int me) {
    std::vector<int> known;                      // numbers of nodes
    std::vector<std::vector<int>> members;       // by node
    std::vector<std::size_t> node, local;        // by member
    for (std::size_t m = 0; m < nodes.size(); ++m) {
      node.push_back(std::size_t(std::find(known.begin(), known.end(), nodes[m]) - known.begin()));
      if (node[m] == known.size()) {
        known.push_back(nodes[m]);
        members.emplace_back();
      }
      local.push_back(members[node[m]].size());
      members[node[m]].push_back(int(m));
    }
    // The shift by node spreads the load. Without it, the first members of all nodes would have the same server.
    const auto server = [&](std::size_t on, std::size_t m) { return (local[m] + node[m]) % members[on].size(); };
    const std::size_t here = node[std::size_t(me)];
    mates_ = members[here];
    place_ = local[std::size_t(me)];
    served_.resize(mates_.size());
    nodes_ = int(members.size());
    for (std::size_t n = 0; n < members.size(); ++n) {
      std::vector<int> sends(members[n].size());
      for (std::size_t m = 0; m < node.size(); ++m) {
        if (node[m] != n) ++sends[server(n, m)];
        if (n == here) served_[node[m] == here ? local[m] : server(here, m)].push_back(int(m));
      }
      messages_ = std::max(messages_, *std::max_element(sends.begin(), sends.end()));
      most_mates_ = std::max(most_mates_, int(members[n].size()) - 1);
      if (n != here) origins_.push_back({members[n], members[n][server(n, std::size_t(me))]});
    }
  }

  int nodes() const { return nodes_; }
  /// The most packets that any member of the group sends to other nodes.
  int messages() const { return messages_; }
  /// The most other members that any member has on its node.
  int most_mates() const { return most_mates_; }
  /// The members on this one's node, itself included, ascending.
  const std::vector<int>& mates() const { return mates_; }
  /// The index of this member in mates().
  std::size_t place() const { return place_; }
  /// The receivers of blocks that are sent through the k-th member of this node: itself and its remote members, ascending.
  const std::vector<int>& served(std::size_t k) const { return served_[k]; }
  struct origin {
    std::vector<int> members;  // ascending
    int server = 0;            // the member that sends this one the blocks of its node
  };
  /// The other nodes.
  const std::vector<origin>& origins() const { return origins_; }

 private:
  int nodes_ = 0, messages_ = 0, most_mates_ = 0;
  std::size_t place_ = 0;
  std::vector<int> mates_;
  std::vector<std::vector<int>> served_;
  std::vector<origin> origins_;
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

/// The state of one member in a hierarchical exchange. The caller sends the packets: begin(); `to_mates` arrive as `from_mates`;
/// forward(); `to_others` arrive as `from_others`; deliver(). If a packet is lost, its blocks are marked as lost here and at the receivers
/// to which they should be forwarded. Keeps its memory for the next exchange.
class hierarchical_all_to_all {
 public:
  /// Packs the packets for mates. No block of any member may exceed `block_bytes`. The own block is not copied.
  void begin(const node_routes& routes, const exchange_part& part, std::int64_t block_bytes) {
    routes_ = &routes;
    part_ = part;
    mismatch_.clear();
    for (std::vector<packet>* packets : {&to_mates_, &from_mates_, &to_others_, &from_others_}) packets->clear();
    const std::vector<int>& mates = routes.mates();
    const std::size_t here = routes.place();
    std::size_t bytes = 0;
    const auto in_all = [&](std::size_t packets, std::size_t blocks) { return packets * packet::most_bytes(blocks, block_bytes); };
    for (std::size_t k = 0; k < mates.size(); ++k)
      if (k != here) bytes += in_all(1, routes.served(k).size()) + in_all(1, routes.served(here).size());
    bytes += in_all(routes.served(here).size(), mates.size());
    for (const node_routes::origin& o : routes.origins()) bytes += in_all(1, o.members.size());
    if (memory_.size() < bytes) memory_.resize(bytes);
    std::byte* next = memory_.data();
    const auto add = [&](std::vector<packet>& packets, int member, std::size_t blocks) {
      const std::size_t most = packet::most_bytes(blocks, block_bytes);
      packets.emplace_back(member, std::span(next, most), blocks);
      next += most;
    };
    for (std::size_t k = 0; k < mates.size(); ++k) {
      if (k == here) continue;
      add(to_mates_, mates[k], routes.served(k).size());
      for (const int m : routes.served(k)) to_mates_.back().put(part.send[std::size_t(m)]);
      add(from_mates_, mates[k], routes.served(here).size());
    }
    for (const int m : routes.served(here))
      if (m != mates[here]) add(to_others_, m, mates.size());
    for (const node_routes::origin& o : routes.origins()) add(from_others_, o.server, o.members.size());
  }

  /// Unpacks the mates' blocks for this member, and packs the packets for other nodes.
  void forward() {
    const std::vector<int>&mates = routes_->mates(), &served = routes_->served(routes_->place());
    auto from = from_mates_.begin();
    for (const int mate : mates) {
      const bool mine = mate == mates[routes_->place()];
      auto to = to_others_.begin();
      for (const int m : served) {
        if (m != mates[routes_->place()]) (to++)->put(mine ? part_.send[std::size_t(m)] : from->take());
        else if (!mine) accept(mate, from->take());
      }
      if (!mine) ++from;
    }
  }

  /// Unpacks the packets from other nodes. Returns an error text, or an empty string.
  const std::string& deliver() {
    auto from = from_others_.begin();
    for (const node_routes::origin& o : routes_->origins()) {
      for (const int m : o.members) accept(m, from->take());
      ++from;
    }
    return mismatch_;
  }

  std::span<packet> to_mates() { return to_mates_; }
  std::span<packet> from_mates() { return from_mates_; }
  std::span<packet> to_others() { return to_others_; }
  std::span<packet> from_others() { return from_others_; }

 private:
  const node_routes* routes_ = nullptr;
  exchange_part part_;
  std::vector<std::byte> memory_;
  std::vector<packet> to_mates_, from_mates_, to_others_, from_others_;
  std::string mismatch_;

  void accept(int from, std::optional<std::span<const std::byte>> block) {
    const std::span<std::byte> to = part_.recv[std::size_t(from)];
    if (block && block->size() == to.size()) return copy_bytes(to, *block);
    const int me = routes_->mates()[routes_->place()];
    mismatch_ = unexpected(me, part_.recv.size(), to.size(), from, block ? "sent " + std::to_string(block->size()) : "cannot be heard");
  }
};

}}}  // namespace gshard::v0::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A reduce_scatter in two levels: sums within each node, then an exchange of the sums between nodes.

#include <gshard/exec/reduce/combine_operands.hpp>
#include <gshard/exec/reduce/node_group.hpp>
#include <gshard/exec/reduce/rounds.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

// Member a of a node adds the node's addends for share a of every remote member's block, and for its own block. It sends each remote member
// its share of that member's block. Every node thus sends one partial sum of every remote element, in equal shares from all its members. It
// sends several if its members are not one subtree of the order of the sum.
namespace gshard { inline namespace v0 { namespace detail {

/// Rounds of a reduce_scatter in the groups of the held devices. In a round every member has addends for a block of each member, and gets
/// the sum of its own block. In one level, addends go to their receiver directly. Both ways give the same bits. Keeps its memory between
/// rounds.
class hierarchical_reduce_scatter {
 public:
  /// 2 if members share a node: one exchange within nodes, then one between nodes. Otherwise 1.
  static std::size_t stages(const held_groups& groups) { return groups.have_mates() ? 2 : 1; }

  /// Returns the exchange of the first stage. addends(i, m): the addends of held device i for the block of member m. They must not change
  /// before `end`. No other round in flight may use `slot`.
  std::span<const exchange_part> begin(const held_groups& groups, const combination& how, std::size_t slot,
                                       function_ref<std::span<const std::byte>(std::size_t, std::size_t)> addends) {
    round& now = rounds_[slot];
    const std::size_t p = groups.members();
    now.how = how;
    now.blocks.resize(groups.size());
    now.send.resize(groups.size() * p);
    now.recv.resize(groups.size() * p);
    std::size_t room = 0;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      now.blocks[i].resize(p);
      for (std::size_t m = 0; m < p; ++m) now.blocks[i][m] = addends(i, m);
      room += now.room_for(groups[i], i);
    }
    if (now.memory.size() < room) now.memory.resize(room);
    now.next = now.memory.data();
    if (stages(groups) == 1) return forward(groups, slot);
    pack_for_mates(groups, now);
    return now.parts;
  }

  /// Sums within the nodes, and returns the exchange between nodes.
  std::span<const exchange_part> forward(const held_groups& groups, std::size_t slot) {
    round& now = rounds_[slot];
    for (std::size_t i = 0; i < groups.size(); ++i) add_within(groups[i], i, now);
    now.parts.clear();
    for (std::size_t i = 0; i < groups.size(); ++i) between(groups[i], i, now);
    return now.parts;
  }

  /// Combines the received partial sums into result(i), the block of held device i. It may be the device's own addends.
  void end(const held_groups& groups, std::size_t slot, function_ref<std::byte*(std::size_t)> result) {
    for (std::size_t i = 0; i < groups.size(); ++i) finish(groups[i], i, rounds_[slot], result(i));
  }

 private:
  using block = std::span<const std::byte>;
  struct round {
    combination how;
    std::vector<std::byte> memory;
    std::byte* next = nullptr;               // the free memory
    std::vector<std::vector<block>> blocks;  // by held device: its addends for each member
    std::vector<std::span<const std::byte>> send;
    std::vector<std::span<std::byte>> recv;        // per held device and member, of the exchange in progress
    std::vector<std::span<std::byte>> from_mates;  // likewise, of the exchange within nodes
    std::vector<std::span<std::byte>> partial;     // likewise: the partial sums of this node for that member, one after another
    std::vector<exchange_part> parts;

    std::span<std::byte> take(std::int64_t bytes) { return {std::exchange(next, next + bytes), std::size_t(bytes)}; }
    std::int64_t numbers(std::int64_t bytes) const { return bytes / how.width(); }

    /// The share of a member's block that member `of` adds for its node, in bytes.
    interval share(const node_group& g, block whole, std::size_t of) const {
      const interval which = node_group::share(numbers(std::int64_t(whole.size())), g.place(of), g.members(g.node(of)).size());
      return {which.begin * how.width(), which.end * how.width()};
    }
    /// The bytes that each mate sends to member `of` of this node: its addends for the shares of remote blocks, and for the own block.
    std::int64_t bytes_within(const node_group& g, std::size_t i, std::size_t of) const {
      auto bytes = std::int64_t(blocks[i][of].size());
      for (std::size_t m = 0; m < g.size(); ++m)
        if (g.node(m) != g.here()) bytes += share(g, blocks[i][m], of).size();
      return bytes;
    }
    std::size_t room_for(const node_group& g, std::size_t i) const {
      std::int64_t bytes = 0;
      for (const std::size_t mate : g.mates())
        if (mate != g.me()) bytes += bytes_within(g, i, mate) + bytes_within(g, i, g.me());
      if (g.has_mates()) bytes += std::int64_t(g.parts_of(g.here()).size()) * bytes_within(g, i, g.me());
      for (std::size_t m = 0; m < g.size(); ++m)
        if (g.node(m) != g.here()) bytes += std::int64_t(g.parts_of(g.node(m)).size()) * share(g, blocks[i][g.me()], m).size();
      return std::size_t(bytes);
    }
  };
  std::array<round, rounds_under_way> rounds_;

  static block of_share(block whole, interval which) { return whole.subspan(std::size_t(which.begin), std::size_t(which.size())); }

  static void pack_for_mates(const held_groups& groups, round& now) {
    now.from_mates.assign(now.recv.size(), {});
    now.partial.assign(now.recv.size(), {});
    now.parts.clear();
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const node_group& g = groups[i];
      const std::vector<block>& blocks = now.blocks[i];
      const auto send = std::span(now.send).subspan(i * g.size(), g.size());
      const auto recv = std::span(now.from_mates).subspan(i * g.size(), g.size());
      std::ranges::fill(send, block());
      for (const std::size_t mate : g.mates()) {
        if (mate == g.me()) continue;
        const std::span<std::byte> to = now.take(now.bytes_within(g, i, mate));
        std::byte* next = to.data();
        const auto put = [&](block what) {
          copy_bytes({next, what.size()}, what);
          next += what.size();
        };
        for (std::size_t m = 0; m < g.size(); ++m)
          if (g.node(m) != g.here()) put(of_share(blocks[m], now.share(g, blocks[m], mate)));
        put(blocks[mate]);
        send[mate] = to;
        recv[mate] = now.take(now.bytes_within(g, i, g.me()));
      }
      now.parts.push_back({send, recv});
    }
  }

  /// The partial sums of this node: for this member's share of every remote block, and for its own block.
  static void add_within(const node_group& g, std::size_t i, round& now) {
    if (!g.has_mates()) return;
    const std::vector<block>& blocks = now.blocks[i];
    std::int64_t at = 0;  // offset in the data of each mate
    const auto add = [&](std::size_t m, interval which) {
      const std::vector<std::size_t>& parts = g.parts_of(g.here());
      const std::span<std::byte> sums = now.partial[i * g.size() + m] = now.take(std::int64_t(parts.size()) * which.size());
      const auto addends = [&](std::size_t member) {
        return member == g.me() ? blocks[m].data() + which.begin : now.from_mates[i * g.size() + member].data() + at;
      };
      for (std::size_t k = 0; k < parts.size(); ++k)
        combine_operands(now.how, g.order(), g.parts().all[parts[k]].subtree, now.numbers(which.size()), addends,
                         sums.data() + std::int64_t(k) * which.size());
      at += which.size();
    };
    for (std::size_t m = 0; m < g.size(); ++m)
      if (g.node(m) != g.here()) add(m, now.share(g, blocks[m], g.me()));
    add(g.me(), {0, std::int64_t(blocks[g.me()].size())});
  }

  /// Without mates, the addends are the partial sums.
  static void between(const node_group& g, std::size_t i, round& now) {
    const auto send = std::span(now.send).subspan(i * g.size(), g.size());
    const auto recv = std::span(now.recv).subspan(i * g.size(), g.size());
    for (std::size_t m = 0; m < g.size(); ++m) {
      const bool remote = g.node(m) != g.here();
      send[m] = !remote ? block() : g.has_mates() ? block(now.partial[i * g.size() + m]) : now.blocks[i][m];
      recv[m] = remote ? now.take(std::int64_t(g.parts_of(g.node(m)).size()) * now.share(g, now.blocks[i][g.me()], m).size())
                       : std::span<std::byte>();
    }
    now.parts.push_back({send, recv});
  }

  /// Partial sums arrive in shares. Between two bounds of shares, every partial sum is contiguous. Offsets are in bytes.
  static void finish(const node_group& g, std::size_t i, const round& now, std::byte* result) {
    const block own = now.blocks[i][g.me()];
    const auto n = std::int64_t(own.size());
    std::int64_t begin = 0;
    while (begin < n) {
      std::int64_t end = n;
      for (std::size_t node = 0; node < g.nodes(); ++node)
        if (node != g.here()) end = std::min(end, share_at(g, node, own, begin, now).second.end);
      const auto sums = [&](std::size_t part) -> const std::byte* {
        const auto node = std::size_t(g.parts().all[part].owner);
        const std::vector<std::size_t>& parts = g.parts_of(node);
        const std::int64_t k = std::ranges::find(parts, part) - parts.begin();
        if (node == g.here()) return (g.has_mates() ? now.partial[i * g.size() + g.me()].data() : own.data()) + k * n + begin;
        const auto [member, which] = share_at(g, node, own, begin, now);
        return now.recv[i * g.size() + member].data() + k * which.size() + begin - which.begin;
      };
      combine_operands(now.how, g.parts().between, g.parts().between.root(), now.numbers(end - begin), sums, result + begin);
      begin = end;
    }
  }
  /// The member of a node that sends byte k of the own block, and the bytes that it sends.
  static std::pair<std::size_t, interval> share_at(const node_group& g, std::size_t node, block own, std::int64_t k, const round& now) {
    const std::vector<std::size_t>& members = g.members(node);
    if (members.size() == 1) return {members[0], {0, std::int64_t(own.size())}};
    for (const std::size_t m : members)
      if (const interval which = now.share(g, own, m); which.begin <= k && k < which.end) return {m, which};
    return {members.back(), {k, k}};  // not reached: shares cover the block
  }
};

}}}  // namespace gshard::v0::detail

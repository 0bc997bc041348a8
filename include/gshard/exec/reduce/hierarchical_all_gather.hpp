// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// An all_gather in two levels: every node receives a block once, in shares, and its members pass the shares on within the node.

#include <gshard/exec/reduce/node_group.hpp>
#include <gshard/exec/reduce/rounds.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// Rounds of an all_gather in the groups of the held devices. In one level, blocks go to all members directly. Keeps its memory between
/// rounds.
class hierarchical_all_gather {
 public:
  /// 2 if members share a node: one exchange between nodes, then one within nodes. Otherwise 1.
  static std::size_t stages(const held_groups& groups) { return groups.have_mates() ? 2 : 1; }

  /// Returns the exchange between nodes. own(i): the block of held device i. to(i, m): its buffer for the block of member m; the buffer for
  /// its own block is not written. Blocks must stay valid until `end`.
  std::span<const exchange_part> begin(const held_groups& groups, std::size_t slot,
                                       function_ref<std::span<const std::byte>(std::size_t)> own,
                                       function_ref<std::span<std::byte>(std::size_t, std::size_t)> to) {
    round& now = rounds_[slot];
    const std::size_t p = groups.members();
    now.own.resize(groups.size());
    now.to.resize(groups.size() * p);
    now.send.resize(groups.size() * p);
    now.recv.resize(groups.size() * p);
    now.parts.clear();
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const node_group& g = groups[i];
      now.own[i] = own(i);
      for (std::size_t m = 0; m < p; ++m) {
        const bool remote = g.node(m) != g.here();
        now.to[i * p + m] = to(i, m);
        now.send[i * p + m] = remote ? share_of(now.own[i], g, m) : std::span<const std::byte>();
        now.recv[i * p + m] = remote ? share_of(now.to[i * p + m], g, g.me()) : std::span<std::byte>();
      }
      now.parts.push_back({std::span(now.send).subspan(i * p, p), std::span(now.recv).subspan(i * p, p)});
    }
    return now.parts;
  }

  /// Packs the own block and the received shares for the other members of the node. Returns the exchange within nodes.
  std::span<const exchange_part> forward(const held_groups& groups, std::size_t slot) {
    round& now = rounds_[slot];
    const std::size_t p = groups.members();
    std::size_t room = 0;
    for (std::size_t i = 0; i < groups.size(); ++i)
      for (const std::size_t mate : groups[i].mates()) room += bytes_from(groups[i], now, i, mate);
    if (now.memory.size() < room) now.memory.resize(room);
    std::byte* next = now.memory.data();
    std::ranges::fill(now.send, std::span<const std::byte>());
    std::ranges::fill(now.recv, std::span<std::byte>());
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const node_group& g = groups[i];
      const std::byte* const packed = next;
      const auto put = [&](std::span<const std::byte> what) {
        copy_bytes({next, what.size()}, what);
        next += what.size();
      };
      put(now.own[i]);
      for_each_remote(g, [&](std::size_t m) { put(share_of(now.to[i * p + m], g, g.me())); });
      for (const std::size_t mate : g.mates()) {
        if (mate == g.me()) continue;
        now.send[i * p + mate] = {packed, bytes_from(g, now, i, g.me())};
        now.recv[i * p + mate] = {next, bytes_from(groups[i], now, i, mate)};
        next += now.recv[i * p + mate].size();
      }
    }
    return now.parts;
  }

  /// Unpacks the blocks received from members of the node.
  void end(const held_groups& groups, std::size_t slot) const {
    if (stages(groups) == 1) return;
    const round& now = rounds_[slot];
    const std::size_t p = groups.members();
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const node_group& g = groups[i];
      for (const std::size_t mate : g.mates()) {
        if (mate == g.me()) continue;
        std::span<const std::byte> from = now.recv[i * p + mate];
        const auto take = [&](std::span<std::byte> to) {
          copy_bytes(to, from.first(to.size()));
          from = from.subspan(to.size());
        };
        take(now.to[i * p + mate]);
        for_each_remote(g, [&](std::size_t m) { take(share_of(now.to[i * p + m], g, mate)); });
      }
    }
  }

 private:
  struct round {
    std::vector<std::span<const std::byte>> own, send;
    std::vector<std::span<std::byte>> to, recv;  // per held device and member
    std::vector<exchange_part> parts;
    std::vector<std::byte> memory;  // of the exchange within nodes
  };
  std::array<round, rounds_under_way> rounds_;

  /// The share of a remote member's block that member `of` receives for its node.
  template <class Byte>
  static std::span<Byte> share_of(std::span<Byte> block, const node_group& g, std::size_t of) {
    const interval which = node_group::share(std::int64_t(block.size()), g.place(of), g.members(g.node(of)).size());
    return block.subspan(std::size_t(which.begin), std::size_t(which.size()));
  }
  template <class F>
  static void for_each_remote(const node_group& g, F f) {
    for (std::size_t m = 0; m < g.size(); ++m)
      if (g.node(m) != g.here()) f(m);
  }
  /// The bytes that `mate`, a member on held device i's node, sends to each other member there: its block, and its shares of remote blocks.
  static std::size_t bytes_from(const node_group& g, const round& now, std::size_t i, std::size_t mate) {
    std::size_t bytes = mate == g.me() ? now.own[i].size() : now.to[i * g.size() + mate].size();
    for_each_remote(g, [&](std::size_t m) { bytes += share_of(now.to[i * g.size() + m], g, mate).size(); });
    return bytes;
  }
};

}}}  // namespace gshard::v0::detail

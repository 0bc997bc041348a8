// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Exchanges blocks directly between all members: all_to_all, collective_permute, general moves, and long all_gathers.

#include <gshard/exec/backend/backend.hpp>
#include <gshard/exec/collective/collective_in_rounds.hpp>
#include <gshard/exec/reduce/rounds.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// Each device sends every other device of its group the missing pieces of that device's new shards.
class exchange_in_rounds final : public collective_in_rounds {
 public:
  exchange_in_rounds(exchanged_blocks what, bool early) : collective_in_rounds(std::move(what), early) {
    for (round& r : under_way_) {
      r.lists.resize(blocks().devices());
      for (std::size_t i = 0; i < r.lists.size(); ++i) {
        r.lists[i].send.resize(blocks().members(i));
        r.lists[i].recv.resize(blocks().members(i));
        r.parts.push_back({r.lists[i].send, r.lists[i].recv});
      }
    }
  }

 private:
  struct round {
    struct of_device {
      std::vector<std::span<const std::byte>> send;
      std::vector<std::span<std::byte>> recv;
    };
    std::vector<of_device> lists;
    std::vector<exchange_part> parts;
  };
  std::array<round, rounds_under_way> under_way_;

  std::span<const exchange_part> exchange(std::size_t r, std::size_t) override {
    round& now = under_way_[r % rounds_under_way];
    for (std::size_t i = 0; i < now.lists.size(); ++i)
      for (std::size_t m = 0; m < now.lists[i].send.size(); ++m) {
        if (m == blocks().me(i)) continue;
        now.lists[i].send[m] = blocks().outgoing(i, r, m);
        now.lists[i].recv[m] = blocks().incoming(i, r, m);
      }
    return now.parts;
  }
  void took(std::size_t r) override { blocks().unpack(r); }
};

}}}  // namespace gshard::v0::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// An all_gather in two levels: between nodes, and within nodes.

#include <gshard/exec/backend/backend.hpp>
#include <gshard/exec/collective/collective_in_rounds.hpp>
#include <gshard/exec/reduce/hierarchical_all_gather.hpp>
#include <gshard/exec/reduce/node_group.hpp>
#include <gshard/exec/reduce/rounds.hpp>

#include <cstddef>
#include <span>
#include <utility>

namespace gshard { inline namespace v0 { namespace detail {

/// An all_gather in whose rounds each device sends its own block to all members. A node receives a block once.
class gather_by_node final : public collective_in_rounds {
 public:
  gather_by_node(exchanged_blocks what, held_groups groups, bool early)
      : collective_in_rounds(std::move(what), early), groups_(std::move(groups)) {}

 private:
  held_groups groups_;

  std::size_t stages() const override { return hierarchical_all_gather::stages(groups_); }
  std::span<const exchange_part> exchange(std::size_t r, std::size_t stage) override {
    const std::size_t slot = r % rounds_under_way;
    hierarchical_all_gather& gather = blocks().room().gather;
    if (stage == 1) return gather.forward(groups_, slot);
    return gather.begin(
        groups_, slot, [&](std::size_t i) { return blocks().outgoing(i, r, blocks().me(i)); },
        [&](std::size_t i, std::size_t m) { return blocks().incoming(i, r, m); });
  }
  void took(std::size_t r) override {
    blocks().room().gather.end(groups_, r % rounds_under_way);
    blocks().unpack(r);
  }
};

}}}  // namespace gshard::v0::detail

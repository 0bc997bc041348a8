// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Runs a reduce_scatter of a plan by messages.

#include <gshard/exec/backend/backend.hpp>
#include <gshard/exec/collective/collective.hpp>
#include <gshard/exec/collective/collective_in_rounds.hpp>
#include <gshard/exec/collective/replica_shares.hpp>
#include <gshard/exec/reduce/hierarchical_reduce_scatter.hpp>
#include <gshard/exec/reduce/node_group.hpp>
#include <gshard/exec/reduce/rounds.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// A reduce_scatter of a plan, bound to memory. Each device sends every member the addends of that member's new shards.
class reduce_scatter_step final : public collective_in_rounds {
 public:
  /// `early`: as for collective_in_rounds.
  reduce_scatter_step(const step_moves& moves, std::shared_ptr<collective_room> room, bool early)
      : reduce_scatter_step(moves, std::move(room), early, moves.shares(), groups_of(moves)) {}

  void finish() override {
    finish_both([this] { collective_in_rounds::finish(); }, [this] { exchange_shares(); });
  }

 private:
  replica_shares shares_;
  held_groups groups_;

  reduce_scatter_step(const step_moves& moves, std::shared_ptr<collective_room> room, bool early, replica_shares shares, held_groups groups)
      : collective_in_rounds(addends(moves, std::move(room), shares, groups.have_levels()), early),
        shares_(std::move(shares)),
        groups_(std::move(groups)) {}

  static held_groups groups_of(const step_moves& moves) {
    held_groups groups;
    groups.use(moves.cluster().backend(), moves.axes());
    return groups;
  }
  static exchanged_blocks addends(const step_moves& moves, std::shared_ptr<collective_room> room, const replica_shares& shares,
                                  bool levels) {
    exchanged_blocks made{block_rounds(moves, std::move(room), levels), {}, {}};
    exchange_bounds all{.block_bytes = 0};
    for (std::size_t i = 0; i < moves.devices(); ++i) {
      const device_group members = moves.group(i);
      std::int64_t messages = 0;
      for (int m = 0; m < members.size(); ++m) {
        const std::vector<piece> theirs = own_share(shares, i, moves.summed(i, members.device(m)));
        made.blocks.send(i, std::size_t(m), theirs);
        if (m == members.member()) made.blocks.receive(i, std::size_t(m), theirs);  // their sum
        all.block_bytes = std::max(all.block_bytes, elements_of(theirs) * moves.width());
        messages += elements_of(theirs) > 0 ? 1 : 0;
      }
      all.messages = std::max(all.messages, std::min(std::int64_t(members.size()) - 1, messages));
      made.received.push_back((members.size() - 1) * elements_of(moves.kept(i)) * moves.width());  // of a sum of all elements
    }
    made.blocks.place(all);
    return made;
  }
  static std::int64_t elements_of(const std::vector<piece>& pieces) {
    std::int64_t n = 0;
    for (const piece& p : pieces) n += p.elements;
    return n;
  }
  /// The shares of some pieces that the group of a held device sums.
  static std::vector<piece> own_share(const replica_shares& shares, std::size_t i, const std::vector<piece>& pieces) {
    if (!shares.any()) return pieces;
    std::vector<piece> own;
    for (const piece& p : pieces)
      if (piece s = share_of(p, outermost_dim(p.from), shares.place(i), shares.count(i)); s.elements > 0) own.push_back(std::move(s));
    return own;
  }
  /// Exchanges the shares. They are contiguous in the new shards.
  void exchange_shares() {
    if (!shares_.any()) return;
    const step_moves& moves = blocks().moves();
    for (std::size_t t = 0; t < moves.tensors().size(); ++t)
      shares_.exchange(blocks().on(), blocks().room().channel, [&](std::size_t i, std::size_t k) {
        const bound_value& v = moves.tensors()[t].out;
        const piece whole{t, v.places[i], v.places[i], v.elements(i)};
        const piece share = share_of(whole, outermost_dim(whole.from), k, shares_.count(i));
        return std::span<std::byte>(v.data[i] + inside(v.places[i], share.to) * moves.width(),
                                    std::size_t(share.elements * moves.width()));
      });
  }

  std::size_t stages() const override { return hierarchical_reduce_scatter::stages(groups_); }
  std::span<const exchange_part> exchange(std::size_t r, std::size_t stage) override {
    const std::size_t slot = r % rounds_under_way;
    hierarchical_reduce_scatter& scatter = blocks().room().scatter;
    if (stage == 1) return scatter.forward(groups_, slot);
    return scatter.begin(groups_, blocks().moves().how(), slot, [&](std::size_t i, std::size_t m) { return blocks().outgoing(i, r, m); });
  }
  void took(std::size_t r) override {
    blocks().room().scatter.end(groups_, r % rounds_under_way,
                                [&](std::size_t i) { return blocks().incoming(i, r, blocks().me(i)).data(); });
    blocks().unpack(r);
  }
};

}}}  // namespace gshard::v0::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The common part of collectives that exchange blocks in rounds.

#include <gshard/exec/backend/backend.hpp>
#include <gshard/exec/collective/block_rounds.hpp>
#include <gshard/exec/collective/collective.hpp>
#include <gshard/exec/collective/collective_room.hpp>
#include <gshard/exec/collective/local_copy.hpp>
#include <gshard/exec/collective/step_moves.hpp>
#include <gshard/exec/reduce/rounds.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// The blocks of a collective, the pieces that devices keep, and the bytes that each held device receives.
struct exchanged_blocks {
  block_rounds blocks;
  kept_pieces kept;
  std::vector<std::int64_t> received;
};

/// The blocks of an exchange or an all_gather. `by_node`: members do not send to all others directly, but to one member of each node.
inline exchanged_blocks blocks_of_exchange(const step_moves& moves, std::shared_ptr<collective_room> room, bool by_node) {
  block_rounds blocks(moves, std::move(room), by_node);
  exchange_bounds all{.block_bytes = 0};
  std::vector<std::vector<piece>> kept;
  for (std::size_t i = 0; i < moves.devices(); ++i) {
    const device_group members = moves.group(i);
    const auto n = std::size_t(members.size()), me = blocks.me(i);
    std::vector<std::vector<piece>> send(n), recv(n);
    std::vector<std::int64_t> sent(n * n);  // elements, by sender and receiver
    moves.for_each_origin(members, [&](std::size_t from, std::size_t to, const std::vector<piece>& both) {
      for (const piece& x : both) sent[from * n + to] += from == to ? 0 : x.elements;
      if (from == me) append(send[to], both);
      else if (to == me) append(recv[from], both);
    });
    all.block_bytes = std::max(all.block_bytes, *std::ranges::max_element(sent) * moves.width());
    for (auto row = sent.begin(); row != sent.end(); row += std::ptrdiff_t(n))
      all.messages = std::max(all.messages, std::int64_t(n) - std::count(row, row + std::ptrdiff_t(n), 0));
    for (std::size_t m = 0; m < n; ++m) {
      if (m == me ? moves.gathers() : !by_node) blocks.send(i, m, send[m]);
      if (m != me) blocks.receive(i, m, recv[m]);
    }
    kept.push_back(std::move(send[me]));
  }
  blocks.place(all);
  std::vector<std::int64_t> received;
  for (std::size_t i = 0; i < moves.devices(); ++i) received.push_back(blocks.received(i));
  return {std::move(blocks), kept_pieces(moves, std::move(kept)), std::move(received)};
}

/// A collective that exchanges blocks in rounds. Kept pieces are copied from shard to shard while messages are in flight.
class collective_in_rounds : public collective, protected round_work {
 public:
  void start() override {
    const step_moves& moves = blocks_.moves();
    for (std::size_t i = 0; i < blocks_.devices(); ++i)
      blocks_.on().count(i, moves.gathers() ? traffic{0, 0, 1, received_[i]} : traffic{moves.passes_on() ? 0 : 1, received_[i], 0, 0});
    const bool first = kept_.bytes() <= short_copy;
    if (first) kept_.copy(moves);
    collective_room& room = blocks_.room();
    exchange_bounds all = blocks_.bounds();
    all.channel = room.channel;
    all.finishes_next = !early_ && !(room.advance_others && room.advance_others());
    room.rounds.start(blocks_.on(), moves.axes(), blocks_.rounds(), all, *this);
    if (!first) kept_.copy(moves);
  }
  bool advance() override { return blocks_.room().rounds.advance(*this); }
  void finish() override {
    blocks_.room().advance_with_others([this] { return advance(); });
    blocks_.room().rounds.finish(*this);
  }
  void drop() override { blocks_.room().rounds.drop(*this); }

 protected:
  /// `early`: other steps run between start() and finish(). No other step may use the room of the blocks in that time.
  collective_in_rounds(exchanged_blocks what, bool early)
      : blocks_(std::move(what.blocks)), kept_(std::move(what.kept)), received_(std::move(what.received)), early_(early) {}
  const block_rounds& blocks() const { return blocks_; }

 private:
  block_rounds blocks_;
  kept_pieces kept_;
  std::vector<std::int64_t> received_;
  bool early_;
  /// The largest copy in bytes that runs before sending. A longer copy would delay messages by more than its overlap gains.
  static constexpr std::int64_t short_copy = 1 << 16;
};

}}}  // namespace gshard::v0::detail

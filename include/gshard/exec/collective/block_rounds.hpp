// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The blocks that devices exchange in a collective: divided into rounds, packed where they are not contiguous, and unpacked.

#include <gshard/exec/backend/backend.hpp>
#include <gshard/exec/collective/collective_room.hpp>
#include <gshard/exec/collective/step_moves.hpp>
#include <gshard/exec/reduce/rounds.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// The blocks of the held devices, by round and member of the group. A contiguous block is sent from the shard and received in the shard
/// without packing. Others are packed and unpacked, in portions that fit into the cache. The entries of a device itself are not messages:
/// they are its own block of an all_gather, or its own addends and its sum in a reduce_scatter.
///
/// After the calls of send() and receive(), place() assigns an address to every block.
class block_rounds {
 public:
  /// `levels`: members on one node communicate first. Rounds are then shorter.
  block_rounds(const step_moves& moves, std::shared_ptr<collective_room> room, bool levels)
      : moves_(moves), room_(std::move(room)), levels_(levels), parts_(moves_.devices()) {
    for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i].me = std::size_t(moves_.group(i).member());
  }

  const step_moves& moves() const { return moves_; }
  collective_room& room() const { return *room_; }
  backend& on() const { return moves_.cluster().backend(); }
  std::size_t rounds() const { return rounds_; }
  /// Of every round. No bounds if blocks need several rounds. All members of a group compute the same.
  const exchange_bounds& bounds() const { return bounds_; }
  std::size_t devices() const { return parts_.size(); }
  std::size_t members(std::size_t i) const { return std::size_t(moves_.group(i).size()); }
  /// The member number of held device i in its group.
  std::size_t me(std::size_t i) const { return parts_[i].me; }

  /// Held device i sends these pieces to member m.
  void send(std::size_t i, std::size_t m, const std::vector<piece>& pieces) { put(parts_[i].send, i, m, portions(i, pieces, me(i), m)); }
  /// Held device i receives these pieces from member m.
  void receive(std::size_t i, std::size_t m, const std::vector<piece>& pieces) {
    put(parts_[i].recv, i, m, portions(i, pieces, m, me(i)));
  }
  /// `all`: bounds if every block is one message.
  void place(const exchange_bounds& all) {
    const std::int64_t most = bytes_per_round(members(0)) / moves_.width() * moves_.width();
    if (!levels_ && all.block_bytes <= most) {
      bounds_ = all;
      if (all.messages > 0) rounds_ = 1;  // all members of a group take part in that round
    }
    for (std::size_t i = 0; i < parts_.size(); ++i) place(i);
  }

  /// Packs the block of round r for member m, unless it is contiguous in the shard. Returns its bytes.
  std::span<std::byte> outgoing(std::size_t i, std::size_t r, std::size_t m) const {
    const block& b = parts_[i].send[r][m];
    std::byte* const at = address(i, b);
    if (std::byte* next = at; !b.run)
      for (const piece& x : b.pieces) {
        const bound_value& v = moves_.sent(x.tensor);
        pack(v.data[i], v.places[i], next, x.from, moves_.width());
        next += x.elements * moves_.width();
      }
    return {at, std::size_t(b.bytes)};
  }
  /// Where the block of round r from member m is received.
  std::span<std::byte> incoming(std::size_t i, std::size_t r, std::size_t m) const {
    const block& b = parts_[i].recv[r][m];
    return {address(i, b), std::size_t(b.bytes)};
  }
  /// Unpacks all received blocks of round r.
  void unpack(std::size_t r) const {
    for (std::size_t i = 0; i < parts_.size(); ++i)
      for (const block& b : parts_[i].recv[r]) unpack(i, b);
  }
  /// The bytes that held device i receives from the other members, in all rounds.
  std::int64_t received(std::size_t i) const {
    std::int64_t bytes = 0;
    for (const std::vector<block>& of_round : parts_[i].recv)
      for (std::size_t m = 0; m < of_round.size(); ++m) bytes += m == me(i) ? 0 : of_round[m].bytes;
    return bytes;
  }

 private:
  /// A portion in this device's memory.
  struct block {
    std::vector<piece> pieces;
    std::int64_t bytes = 0;
    std::byte* run = nullptr;  // its address in the shard if it is contiguous there
    std::int64_t slot = 0;     // otherwise its offset in the packing buffer
  };
  using blocks = std::vector<std::vector<block>>;  // by round and member
  struct part {
    std::size_t me = 0;
    blocks send, recv;
  };
  step_moves moves_;
  std::shared_ptr<collective_room> room_;
  bool levels_;
  std::vector<part> parts_;
  std::size_t rounds_ = 0;
  exchange_bounds bounds_;

  std::byte* address(std::size_t i, const block& b) const { return b.run ? b.run : room_->packed[i].data() + b.slot; }

  std::vector<portion> portions(std::size_t i, const std::vector<piece>& pieces, std::size_t from, std::size_t to) const {
    const device_group group = moves_.group(i);
    return portions_of(pieces, bytes_per_round(members(i), levels_) / moves_.width(), [&](const piece& b) {  // needs no packing
      if (levels_ || moves_.reduce_scatters()) return false;
      return is_run(moves_.place_of(moves_.sent(b.tensor), group.device(int(from))), b.from) &&
             is_run(moves_.place_of(moves_.tensors()[b.tensor].out, group.device(int(to))), b.to);
    });
  }
  void put(blocks& into, std::size_t i, std::size_t m, std::vector<portion> made) {
    rounds_ = std::max(rounds_, made.size());
    if (into.size() < made.size()) into.resize(made.size(), std::vector<block>(members(i)));
    for (std::size_t r = 0; r < made.size(); ++r) into[r][m].pieces = std::move(made[r].pieces);
  }
  /// Assigns an address to every block: in a shard, or in the packing buffer of its round.
  void place(std::size_t i) {
    part& p = parts_[i];
    for (blocks* all : {&p.send, &p.recv}) all->resize(rounds_, std::vector<block>(members(i)));
    std::int64_t end = 0;
    for (std::size_t r = 0; r < rounds_; ++r) {
      std::int64_t next = 0;
      for (block& b : p.send[r]) place(i, b, false, next);
      for (block& b : p.recv[r]) place(i, b, true, next);
      end = std::max(end, next);
    }
    for (std::size_t r = 0; r < rounds_; ++r)
      for (blocks* all : {&p.send, &p.recv})
        for (block& b : (*all)[r]) b.slot += std::int64_t(r % rounds_under_way) * end;
    room_->demand(i, std::int64_t(std::min(rounds_, rounds_under_way)) * end);
  }
  void place(std::size_t i, block& b, bool of_result, std::int64_t& next) const {
    for (const piece& x : b.pieces) b.bytes += x.elements * moves_.width();
    if (b.bytes == 0) return;
    const piece& first = b.pieces[0];
    const bound_value& v = of_result ? moves_.tensors()[first.tensor].out : moves_.sent(first.tensor);
    const kernel::placement& what = of_result ? first.to : first.from;
    if (b.pieces.size() == 1 && is_run(v.places[i], what)) {
      b.run = v.data[i] + inside(v.places[i], what) * moves_.width();
    } else {
      b.slot = next;
      next += (b.bytes + 63) / 64 * 64;
    }
  }
  void unpack(std::size_t i, const block& b) const {
    if (b.run) return;
    const std::byte* next = address(i, b);
    for (const piece& x : b.pieces) {
      const bound_value& v = moves_.tensors()[x.tensor].out;
      detail::unpack(next, x.to, v.data[i], v.places[i], moves_.width());
      next += x.elements * moves_.width();
    }
  }
};

}}}  // namespace gshard::v0::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Runs one collective of a plan between processes that read each other's shards in shared memory.

#include <gshard/exec/collective/collective.hpp>
#include <gshard/exec/collective/collective_room.hpp>
#include <gshard/exec/collective/step_moves.hpp>
#include <gshard/exec/reduce/reduce.hpp>
#include <gshard/exec/reduce/rounds.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// A communication step between devices that can read each other's shards. After a barrier, each device copies the missing pieces
/// directly from the other shards, or reduces them into its own. A second barrier follows before operands may be overwritten. Results and
/// byte counts are the same as with messages. This process holds one device.
class shared_memory_collective : public collective {
 public:
  /// True if a step can run in shared memory; the same on all processes. Small sums are faster as messages.
  static bool serves(const step_moves& moves) {
    if (moves.stays() || moves.row_counts()) return false;
    bool all = true;
    for (const moved_tensor& t : moves.tensors()) {
      all = all && !t.in.everywhere.empty();
      if (moves.all_reduces()) all = all && !t.out.everywhere.empty();
    }
    return all && !(moves.all_reduces() && moves.most() * moves.width() * moves.group(0).size() <= small_sum_bytes);
  }

  void start() final {}
  bool advance() final { return true; }
  void finish() final {
    backend& on = moves_.cluster().backend();
    on.barrier(moves_.axes());
    move();
    on.barrier(moves_.axes());
    on.count(0, received_);
  }
  void drop() final {}

 protected:
  explicit shared_memory_collective(const step_moves& moves) : moves_(moves) {
    const device_group group = moves_.group(0);
    order_ = node_group(moves_.cluster().backend(), moves_.axes(), moves_.cluster().devices()[0]).order();
    members_ = std::size_t(group.size());
    me_ = std::size_t(group.member());
    for (int m = 0; m < group.size(); ++m) device_.push_back(std::size_t(group.device(m)));
  }

  step_moves moves_;
  std::size_t members_ = 1, me_ = 0;
  std::vector<std::size_t> device_;  // by member
  traffic received_;

  const moved_tensor& tensor(std::size_t t) const { return moves_.tensors()[t]; }
  const std::byte* before(std::size_t t, std::size_t member) const { return tensor(t).in.everywhere[device_[member]]; }
  void combine(std::int64_t elements, operand_address from, std::byte* to) const {
    combine_operands(moves_.how(), order_, order_.root(), elements * moves_.parts(), from, to);
  }

 private:
  sum_order order_;

  /// Reads the other shards and writes this device's own.
  virtual void move() = 0;
};

/// Copies the missing pieces.
class shared_memory_exchange final : public shared_memory_collective {
 public:
  explicit shared_memory_exchange(const step_moves& moves) : shared_memory_collective(moves) {
    std::vector<std::vector<pulled>> from(members_);
    std::int64_t bytes = 0;
    moves_.for_each_origin(moves_.group(0), [&](std::size_t m, std::size_t to, const std::vector<piece>& both) {
      if (to != me_) return;
      if (m == me_) return append(kept_, both);
      for (const piece& b : both) {
        from[m].push_back({m, moves_.place_of(tensor(b.tensor).in, int(device_[m])), b});
        bytes += b.elements * moves_.width();
      }
    });
    for (std::size_t k = 1; k < members_; ++k)  // members start with different senders
      for (pulled& p : from[(me_ + k) % members_]) pulled_.push_back(std::move(p));
    received_ = moves_.gathers() ? traffic{0, 0, 1, bytes} : traffic{1, bytes, 0, 0};
  }

 private:
  struct pulled {
    std::size_t member = 0;
    kernel::placement home;  // of the member's shard
    piece what;
  };
  std::vector<piece> kept_;
  std::vector<pulled> pulled_;

  void move() override {
    moves_.copy(kept_, 0);
    for (const pulled& p : pulled_) moves_.copy(p.what, before(p.what.tensor, p.member), p.home, 0);
  }
};

/// Adds the addends of the own new shards.
class shared_memory_reduce_scatter final : public shared_memory_collective {
 public:
  shared_memory_reduce_scatter(const step_moves& moves, std::shared_ptr<collective_room> room)
      : shared_memory_collective(moves), room_(std::move(room)) {
    std::int64_t elements = 0, largest = 0;
    sums_ = portions_of(moves_.kept(0), bytes_per_round(members_) / moves_.width(), [](const piece&) { return false; });
    for (const portion& p : sums_) {
      elements += p.elements;
      largest = std::max(largest, p.elements);
    }
    received_ = {1, std::int64_t(members_ - 1) * elements * moves_.width(), 0, 0};
    room_->demand(0, std::int64_t(members_ + 1) * slot_of(largest));
  }

 private:
  std::shared_ptr<collective_room> room_;
  std::vector<portion> sums_;  // the pieces of this device's new shards

  std::int64_t slot_of(std::int64_t elements) const { return (elements * moves_.width() + 63) / 64 * 64; }

  void move() override {
    for (const portion& p : sums_) {
      const piece& first = p.pieces[0];
      const bound_value &in = tensor(first.tensor).in, &out = tensor(first.tensor).out;
      const bool alone = p.pieces.size() == 1, in_place = alone && is_run(in.places[0], first.from);
      std::byte* const slots = room_->packed[0].data();
      const std::int64_t slot = slot_of(p.elements);
      if (!in_place)
        for (std::size_t m = 0; m < members_; ++m) {
          std::byte* next = slots + std::int64_t(m) * slot;
          for (const piece& b : p.pieces) {
            pack(before(b.tensor, m), tensor(b.tensor).in.places[0], next, b.from, moves_.width());
            next += b.elements * moves_.width();
          }
        }
      const auto from = [&](std::size_t m) {
        return in_place ? before(first.tensor, m) + inside(in.places[0], first.from) * moves_.width() : slots + std::int64_t(m) * slot;
      };
      const bool to_shard = alone && is_run(out.places[0], first.to);
      std::byte* const to =
          to_shard ? out.data[0] + inside(out.places[0], first.to) * moves_.width() : slots + std::int64_t(members_) * slot;
      combine(p.elements, from, to);
      if (to_shard) continue;
      const std::byte* next = to;
      for (const piece& b : p.pieces) {
        unpack(next, b.to, tensor(b.tensor).out.data[0], tensor(b.tensor).out.places[0], moves_.width());
        next += b.elements * moves_.width();
      }
    }
  }
};

/// Each member reduces one range of all elements; then all members copy its result. A result may be in place of its operand: before the
/// barrier, each range is read and written by the same member only.
class shared_memory_all_reduce final : public shared_memory_collective {
 public:
  explicit shared_memory_all_reduce(const step_moves& moves) : shared_memory_collective(moves) {
    const std::int64_t n = moves_.elements(0), members = std::int64_t(members_), block = (n + members - 1) / members;
    for (std::int64_t m = 0; m < members; ++m) {
      const std::int64_t begin = std::min(n, m * block), end = std::min(n, begin + block);
      std::vector<range>& mine = ranges_.emplace_back();
      std::int64_t at = 0;
      for (std::size_t t = 0; t < moves_.tensors().size(); ++t) {
        const std::int64_t elements = tensor(t).in.elements(0), first = std::max(begin, at), last = std::min(end, at + elements);
        if (first < last) mine.push_back({t, first - at, last - first});
        at += elements;
      }
      if (m == std::int64_t(me_)) received_ = {1, (members - 1) * (end - begin) * moves_.width(), 1, (n - (end - begin)) * moves_.width()};
    }
  }

 private:
  /// A range of elements of one tensor.
  struct range {
    std::size_t tensor = 0;
    std::int64_t begin = 0, elements = 0;
  };
  std::vector<std::vector<range>> ranges_;  // by the member that reduces them

  void move() override {
    for (const range& r : ranges_[me_])
      combine(r.elements, [&](std::size_t m) { return before(r.tensor, m) + r.begin * moves_.width(); },
              tensor(r.tensor).out.data[0] + r.begin * moves_.width());
    moves_.cluster().backend().barrier(moves_.axes());
    for (std::size_t k = 1; k < members_; ++k) {
      const std::size_t m = (me_ + k) % members_;
      for (const range& r : ranges_[m])
        std::memcpy(tensor(r.tensor).out.data[0] + r.begin * moves_.width(),
                    tensor(r.tensor).out.everywhere[device_[m]] + r.begin * moves_.width(), std::size_t(r.elements * moves_.width()));
    }
  }
};

}}}  // namespace gshard::v0::detail

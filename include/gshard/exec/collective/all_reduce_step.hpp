// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Runs an all_reduce of a plan by messages.

#include <gshard/exec/collective/collective.hpp>
#include <gshard/exec/collective/collective_room.hpp>
#include <gshard/exec/collective/replica_shares.hpp>
#include <gshard/exec/collective/step_moves.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// An all_reduce of a plan, bound to memory. Several tensors are packed and reduced as one.
class all_reduce_step final : public collective {
 public:
  all_reduce_step(const step_moves& moves, std::shared_ptr<collective_room> room)
      : moves_(moves), room_(std::move(room)), shares_(moves.shares()) {
    for (std::size_t i = 0; i < moves_.devices(); ++i) {
      addends_.push_back(share(i).size() * moves_.parts());
      room_->demand(i, is_alone() ? 0 : moves_.elements(i) * moves_.width());
    }
  }

  void start() override {
    if (!is_alone()) pack();
    from_.clear();
    to_.clear();
    for (std::size_t i = 0; i < moves_.devices(); ++i) {
      const std::int64_t begin = share(i).begin * moves_.width();
      from_.push_back((is_alone() ? tensor(0).in.data[i] : packed(i)) + begin);
      to_.push_back(result(i) + begin);
    }
    room_->sums.start_all_reduce(moves_.how(), on(), moves_.axes(), from_, to_, addends_, most_addends(), room_->channel);
    for (std::size_t i = 0; i < moves_.devices() && shares_.any(); ++i) count_shares(i);
  }
  bool advance() override { return room_->sums.advance_all_reduce(on(), from_, to_); }
  void finish() override {
    room_->advance_with_others([this] { return advance(); });
    finish_both([this] { room_->sums.finish_all_reduce(on(), from_, to_, addends_, most_addends()); }, [this] { exchange_shares(); });
    if (!is_alone()) unpack();
  }
  void drop() override { room_->sums.drop_all_reduce(on(), from_, to_); }

 private:
  step_moves moves_;
  std::shared_ptr<collective_room> room_;
  replica_shares shares_;
  std::vector<const std::byte*> from_;  // per held device
  std::vector<std::byte*> to_;
  std::vector<std::int64_t> addends_;

  const moved_tensor& tensor(std::size_t t) const { return moves_.tensors()[t]; }
  bool is_alone() const { return moves_.tensors().size() == 1; }
  backend& on() const { return moves_.cluster().backend(); }
  std::byte* packed(std::size_t i) { return room_->packed[i].data(); }
  std::byte* result(std::size_t i) { return is_alone() ? tensor(0).out.data[i] : packed(i); }
  /// The elements that the group of a held device sums.
  interval share(std::size_t i) const {
    const std::int64_t n = moves_.elements(i);
    return shares_.any() ? shares_.elements(i, shares_.place(i), n) : interval{0, n};
  }

  void exchange_shares() {
    if (!shares_.any()) return;
    shares_.exchange(on(), room_->channel, [&](std::size_t i, std::size_t k) {
      const interval part = shares_.elements(i, k, moves_.elements(i));
      return std::span<std::byte>(result(i) + part.begin * moves_.width(), std::size_t(part.size() * moves_.width()));
    });
  }
  std::int64_t most_addends() const { return moves_.most() * moves_.parts(); }
  void pack() {
    for (std::size_t i = 0; i < moves_.devices(); ++i) {
      std::byte* next = packed(i);
      for (const moved_tensor& t : moves_.tensors()) {
        if (t.in.bytes(i) > 0) std::memcpy(next, t.in.data[i], std::size_t(t.in.bytes(i)));
        next += t.in.bytes(i);
      }
    }
  }
  void unpack() {
    for (std::size_t i = 0; i < moves_.devices(); ++i) {
      const std::byte* next = packed(i);
      for (const moved_tensor& t : moves_.tensors()) {
        if (t.out.bytes(i) > 0) std::memcpy(t.out.data[i], next, std::size_t(t.out.bytes(i)));
        next += t.out.bytes(i);
      }
    }
  }
  /// Counts the bytes of a sum of all elements. The reducer has already counted those of the share.
  void count_shares(std::size_t i) const {
    const device_group members = moves_.group(i);
    const auto p = std::size_t(members.size());
    const auto part = [&](std::int64_t n) { return node_group::share(n * moves_.parts(), std::size_t(members.member()), p).size(); };
    const std::int64_t each = moves_.width() / moves_.parts(), n = moves_.elements(i), here = share(i).size();
    const std::int64_t own = (part(n) - part(here)) * each;
    on().count(i, {0, std::int64_t(p - 1) * own, 0, (n - here) * moves_.width() - own});
  }
};

}}}  // namespace gshard::v0::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Collectives that are in progress while other steps compute.

#include <gshard/core/schedule/async_schedule.hpp>
#include <gshard/exec/collective/collective.hpp>
#include <gshard/exec/collective/collective_room.hpp>
#include <gshard/exec/collective/make_collective.hpp>
#include <gshard/exec/collective/step_moves.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// The asynchronous communication steps of an executor. All processes start and finish them, and all their other communication, in the
/// same order. In between, each process advances them when it can.
class async_collectives {
 public:
  struct step {
    std::size_t index = 0;  // in the plan
    std::shared_ptr<collective> moves;
    std::shared_ptr<std::vector<std::int64_t>> received;  // bytes, per held device, so far
  };

  /// Prepares for a plan of n steps.
  void resize(std::size_t n) {
    in_flight_.reserve(n);
    starting_.resize(n + 1);
    ending_.resize(n + 1);
    steps_.resize(n + 1);
  }
  void add(std::size_t index, async_interval when, const collective_table& kinds, const step_moves& moves) {
    steps_[index] = {index, make_collective(kinds, moves, room_for(when), true), std::make_shared<std::vector<std::int64_t>>()};
    starting_[std::size_t(when.start)].push_back(steps_[index]);
    ending_[std::size_t(when.finish)].push_back(steps_[index]);
  }
  /// @see collective_room::advance_others
  void while_waiting(const std::function<bool()>& advance_others) {
    for (const room& r : rooms_) r.memory->advance_others = advance_others;
  }

  bool empty() const { return rooms_.empty(); }
  bool has(std::size_t index) const { return steps_[index].moves != nullptr; }
  const step& operator[](std::size_t index) const { return steps_[index]; }
  /// The collectives to start before step i, and those to finish before it.
  std::span<const step> starting(std::size_t i) const { return starting_[i]; }
  std::span<const step> ending(std::size_t i) const { return ending_[i]; }

  /// Every step starts once in a run, and is finished once, or dropped.
  void start(const step& s) {
    in_flight_.push_back(s.moves.get());
    s.moves->start();
  }
  void finish(const step& s) {
    std::erase(in_flight_, s.moves.get());
    s.moves->finish();
  }
  /// Continues with messages that have arrived, without waiting. Also advances all other messages of the backend. Keeps errors for
  /// finish(). Each process may call it at any time, outside of start() and finish(). Returns false if no collective is in flight.
  bool advance(backend& b) noexcept {
    for (collective* const moves : in_flight_) moves->advance();
    b.advance();
    return in_flight();
  }
  bool in_flight() const { return !in_flight_.empty(); }

  /// Drops all collectives in flight when an exception leaves its scope.
  class guard {
   public:
    explicit guard(async_collectives& all) : all_(all) {}
    guard(const guard&) = delete;
    guard& operator=(const guard&) = delete;
    ~guard() {
      if (std::uncaught_exceptions() > before_)
        for (collective* const moves : all_.in_flight_) moves->drop();
      all_.in_flight_.clear();
    }

   private:
    async_collectives& all_;
    int before_ = std::uncaught_exceptions();
  };

 private:
  struct room {
    std::shared_ptr<collective_room> memory;
    std::vector<async_interval> taken;
  };
  std::vector<std::vector<step>> starting_, ending_;  // by the step before which they start or finish
  std::vector<step> steps_;                         // by index; other steps have no moves
  std::vector<room> rooms_;
  std::vector<collective*> in_flight_;  // in the order of their starts

  /// A scratch room that no other collective uses during this interval.
  std::shared_ptr<collective_room> room_for(async_interval when) {
    const auto is_free = [&](const room& r) {
      return std::ranges::all_of(r.taken, [&](const async_interval& o) { return o.finish <= when.start || when.finish <= o.start; });
    };
    auto found = std::ranges::find_if(rooms_, is_free);
    if (found == rooms_.end()) {
      found = rooms_.insert(found, {std::make_shared<collective_room>(), {}});
      found->memory->channel = std::uint32_t(rooms_.size());  // synchronous collectives use channel 0
    }
    found->taken.push_back(when);
    return found->memory;
  }
};

}}}  // namespace gshard::v0::detail

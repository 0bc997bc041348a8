// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Splits a large exchange into rounds with bounded buffers, several of which are in flight and advance as data arrive.

#include <gshard/exec/backend/backend.hpp>
#include <gshard/exec/process/function_ref.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <utility>

namespace gshard { inline namespace v0 { namespace detail {

/// The bytes of a block that are sent in one round. The packed and received data of a round stay in the cache until they are used. A
/// multiple of every element size. It depends only on the size of the group and its levels, so sender and receiver compute the same rounds.
/// With levels, rounds are shorter: the sums within a node of one round overlap with the exchange between nodes of another one.
constexpr std::int64_t bytes_per_round(std::size_t members, bool levels = false) {
  const std::int64_t all = levels ? 1 << 17 : 1 << 18, least = 1 << 13;
  return std::max(least, all / std::int64_t(std::max<std::size_t>(members, 2) - 1)) / 64 * 64;
}

/// The most rounds in flight: enough for a device to continue while another device, which may share its core, is not running. More rounds
/// would fill the queues of a slow network, which then drops packets.
inline constexpr std::size_t rounds_under_way = 12;

/// The rounds of a sequence.
class round_work {
 public:
  /// The number of stages of every round: one or two.
  virtual std::size_t stages() const { return 1; }
  /// The exchange of a stage of round r, once the previous stage has arrived. Its lists and blocks must not change until the stage has
  /// arrived.
  virtual std::span<const exchange_part> exchange(std::size_t r, std::size_t stage) = 0;
  /// Called in the order of rounds, when the last stage of round r has arrived.
  virtual void took(std::size_t r) = 0;

 protected:
  ~round_work() = default;
};

/// An asynchronous exchange in n rounds, each of one or two stages. At most `rounds_under_way` rounds are in flight. The two stages must
/// have different peers, so that messages between two devices keep the order of rounds. A member with fewer rounds may stop earlier, unless
/// bounds are passed. Counts no traffic.
class round_sequence {
 public:
  /// Sends the first rounds. `all`: bounds for every round, and the channel. All processes must start the sequences of a channel in one
  /// order. Between start() and finish(), no other exchange may use the channel. Every call must pass the same work.
  void start(backend& b, std::uint32_t axes, std::size_t n, const exchange_bounds& all, round_work& work) {
    on_ = &b;
    axes_ = axes;
    n_ = n;
    reached_ = {};
    // Only the exchange of a single round may be hierarchical.
    all_ = n == 1 ? all : exchange_bounds{.channel = all.channel};
    problem_ = nullptr;
    send(work);
  }
  /// Continues with the stages that have arrived, without waiting. Returns true if all rounds are complete. Keeps errors for finish().
  bool advance(round_work& work) {
    for (std::size_t stage = work.stages(); stage-- > 0;)
      while (reached_[stage + 1] < reached_[stage] && at(reached_[stage + 1], stage).is_done()) pass(stage, work);
    send(work);
    return reached_[work.stages()] == n_;
  }
  /// Completes all rounds. After an error the other rounds still run; then the error is thrown.
  void finish(round_work& work) {
    while (!advance(work)) pass(stage_of_oldest(work), work);
    n_ = 0;
    reached_ = {};
    if (const std::exception_ptr problem = std::exchange(problem_, nullptr)) std::rethrow_exception(problem);
  }
  /// Completes all rounds after an error, and ignores errors. Other members may have sent any of them.
  void drop(round_work& work) {
    attempt([&] { finish(work); });
    problem_ = nullptr;
  }

 private:
  static constexpr std::size_t most_stages = 2;
  std::array<std::array<pending_exchange, rounds_under_way>, most_stages> under_way_;  // by stage
  backend* on_ = nullptr;
  std::uint32_t axes_ = 0;
  std::size_t n_ = 0;
  std::array<std::size_t, most_stages + 1> reached_{};  // by stage: the number of rounds that have started it; last: complete rounds
  exchange_bounds all_;
  std::exception_ptr problem_;  // the first error

  void attempt(function_ref<void()> f) {
    try {
      f();
    } catch (...) {
      if (!problem_) problem_ = std::current_exception();
    }
  }
  pending_exchange& at(std::size_t round, std::size_t stage) { return under_way_[stage][round % rounds_under_way]; }
  void begin(std::size_t stage, round_work& work) {
    const std::size_t r = reached_[stage]++;
    attempt([&] { at(r, stage) = on_->start(axes_, work.exchange(r, stage), all_); });
  }
  void send(round_work& work) {
    while (reached_[0] < n_ && reached_[0] < reached_[work.stages()] + rounds_under_way) begin(0, work);
  }
  /// Waits for the oldest round in a stage, and continues it.
  void pass(std::size_t stage, round_work& work) {
    const std::size_t r = reached_[stage + 1];
    attempt([&] { at(r, stage).finish(); });
    if (stage + 1 < work.stages()) return begin(stage + 1, work);
    ++reached_[stage + 1];
    attempt([&] { work.took(r); });
  }
  /// Every member has started this stage of the oldest round, or will without waiting for others, so nobody waits forever.
  std::size_t stage_of_oldest(const round_work& work) const {
    std::size_t stage = 0;
    while (stage + 1 < work.stages() && reached_[stage + 1] > reached_[work.stages()]) ++stage;
    return stage;
  }
};

}}}  // namespace gshard::v0::detail

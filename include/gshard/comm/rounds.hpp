// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Splits a large exchange into rounds that fit into a bounded buffer.

#include <gshard/comm/backend.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <utility>

namespace gshard { inline namespace v0 { namespace detail {

/// Bytes of a block that go in one round: what a device packs and what it receives in a round stays in its cache until it is sent or
/// used. A multiple of every element's size, and a function of the size of the group alone, so that sender and receiver find the same
/// rounds.
constexpr std::int64_t bytes_per_round(std::size_t members) {
  constexpr std::int64_t all = 1 << 18, least = 1 << 13;
  return std::max(least, all / std::int64_t(std::max<std::size_t>(members, 2) - 1)) / 64 * 64;
}

/// So many rounds may be under way: enough for a device to go on while another one, which may share its core, is not running.
inline constexpr std::size_t rounds_under_way = 16;

/// An exchange in n rounds that is started and finished in two calls: fill(r) gives the parts of round r, whose lists and blocks stay as
/// they are until took(r), which finds the blocks received. Between the two, fill is called for the rounds that follow, less than
/// `rounds_under_way`. Members for which there are fewer rounds may stop earlier, unless something is known of all. Counts nothing.
class round_sequence {
 public:
  /// Sends what can be sent at once. All processes start their sequences, and what else they exchange, in one order. `all` holds for
  /// every round.
  template <class Fill>
  void start(backend& b, std::uint32_t axes, std::size_t n, const exchange_bounds& all, Fill fill) {
    drop();
    problem_ = nullptr;
    n_ = n;
    all_ = all;
    while (started_ < std::min(n_, rounds_under_way)) send(b, axes, fill);
  }
  /// Sends what follows, too: so all processes finish their sequences, and start others, in one order. A round that fails does not keep
  /// the others from taking place; then throws.
  template <class Fill, class Took>
  void finish(backend& b, std::uint32_t axes, Fill fill, Took took) {
    for (std::size_t done = 0; done < n_; ++done) {
      attempt([&] {
        under_way_[done % rounds_under_way].finish();
        took(done);
      });
      if (started_ < n_) send(b, axes, fill);
    }
    n_ = started_ = 0;
    if (const std::exception_ptr problem = std::exchange(problem_, nullptr)) std::rethrow_exception(problem);
  }
  /// Waits for what is under way, if anything is, and takes nothing.
  void drop() {
    if (n_ == 0) return;
    under_way_ = {};
    n_ = started_ = 0;
  }

 private:
  std::array<pending_exchange, rounds_under_way> under_way_;
  std::size_t n_ = 0, started_ = 0;
  exchange_bounds all_;
  std::exception_ptr problem_;  // the first one

  template <class F>
  void attempt(F f) {
    try {
      f();
    } catch (...) {
      if (!problem_) problem_ = std::current_exception();
    }
  }
  template <class Fill>
  void send(backend& b, std::uint32_t axes, Fill& fill) {
    attempt([&] { under_way_[started_ % rounds_under_way] = b.start(axes, fill(started_), all_); });
    ++started_;
  }
};

}}}  // namespace gshard::v0::detail

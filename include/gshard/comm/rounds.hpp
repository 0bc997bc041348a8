// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Splits a large exchange into rounds with bounded buffers, several of which are in flight.

#include <gshard/comm/backend.hpp>

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

/// The most rounds in flight: enough for a device to continue while another device, which may share its core, is not running.
inline constexpr std::size_t rounds_under_way = 16;

/// An asynchronous exchange in n rounds. fill(r) returns the exchange of round r. Its lists and blocks must not change until took(r), which
/// is called when the blocks have arrived. Between the two, fill is called for at most `rounds_under_way` - 1 later rounds. A member with
/// fewer rounds may stop earlier, unless bounds are passed. Counts no traffic.
class round_sequence {
 public:
  /// Sends the first rounds. All processes must start their sequences, and all other exchanges, in one order. `all`: bounds for every
  /// round.
  template <class Fill>
  void start(backend& b, std::uint32_t axes, std::size_t n, const exchange_bounds& all, Fill fill) {
    drop();
    problem_ = nullptr;
    n_ = n;
    all_ = all;
    while (started_ < std::min(n_, rounds_under_way)) send(b, axes, fill);
  }
  /// Sends the remaining rounds, too. So all processes must finish their sequences, and start others, in one order. After an error the
  /// other rounds still run; then it is thrown.
  template <class Fill, class Took>
  void finish(backend& b, std::uint32_t axes, Fill fill, Took took) {
    for (std::size_t done = 0; done < n_; ++done) {
      attempt([&] { under_way_[done % rounds_under_way].finish(); });
      attempt([&] { took(done); });  // also after an error: it may communicate
      if (started_ < n_) send(b, axes, fill);
    }
    n_ = started_ = 0;
    if (const std::exception_ptr problem = std::exchange(problem_, nullptr)) std::rethrow_exception(problem);
  }
  /// Waits for the rounds in flight and drops their results.
  void drop() {
    if (n_ == 0) return;
    under_way_ = {};
    n_ = started_ = 0;
  }

 private:
  std::array<pending_exchange, rounds_under_way> under_way_;
  std::size_t n_ = 0, started_ = 0;
  exchange_bounds all_;
  std::exception_ptr problem_;  // the first error

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

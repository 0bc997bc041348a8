// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/comm/backend.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>

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

/// An exchange in n rounds: fill(r) gives the parts of round r, whose lists and blocks stay as they are until took(r), which finds the
/// blocks received. Between the two, fill is called for the rounds that follow, less than `rounds_under_way`, and meanwhile() once.
/// Members for which there are fewer rounds may stop earlier. `all` holds for every round. Counts nothing. A round that fails does not keep the others from taking
/// place; then throws.
template <class Fill, class Meanwhile, class Took>
void in_rounds(backend& b, std::uint32_t axes, std::size_t n, const exchange_bounds& all, Fill fill, Meanwhile meanwhile,
               Took took) {
  std::array<pending_exchange, rounds_under_way> under_way;
  std::exception_ptr problem;
  for (std::size_t r = 0, done = 0; done < n; ++r) {
    if (r < n) under_way[r % rounds_under_way] = b.start(axes, fill(r), all);
    if (r == 0) meanwhile();
    if (r + 1 < std::min(rounds_under_way, n)) continue;
    try {
      under_way[done % rounds_under_way].finish();
      took(done);
    } catch (...) {
      if (!problem) problem = std::current_exception();
    }
    ++done;
  }
  if (n == 0) meanwhile();
  if (problem) std::rethrow_exception(problem);
}

}}}  // namespace gshard::v0::detail

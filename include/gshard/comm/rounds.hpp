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
  constexpr std::int64_t all = 1 << 18, least = 1 << 14;
  return std::max(least, all / std::int64_t(std::max<std::size_t>(members, 2) - 1)) / 64 * 64;
}

/// An exchange in n rounds, of which two are under way at a time: fill(r) gives the parts of round r, whose lists and blocks stay as they
/// are until took(r), which finds the blocks received. Between the two, fill(r + 1) is called, and meanwhile() once. Members for which
/// there are fewer rounds may stop earlier. Counts nothing. A round that fails does not keep the others from taking place; then throws.
template <class Fill, class Meanwhile, class Took>
void in_rounds(backend& b, std::uint32_t axes, std::size_t n, Fill fill, Meanwhile meanwhile, Took took) {
  std::array<pending_exchange, 2> under_way;
  std::exception_ptr problem;
  for (std::size_t r = 0; r <= n; ++r) {
    if (r < n) under_way[r % 2] = b.start(axes, fill(r));
    if (r == 0) meanwhile();
    if (r == 0) continue;
    try {
      under_way[(r - 1) % 2].finish();
      took(r - 1);
    } catch (...) {
      if (!problem) problem = std::current_exception();
    }
  }
  if (problem) std::rethrow_exception(problem);
}

}}}  // namespace gshard::v0::detail

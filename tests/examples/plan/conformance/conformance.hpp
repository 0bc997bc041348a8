// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/pass/reshard/reshard.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>
#include <string_view>

// Situations of other partitioners' test suites, in our shapes and letters: what they send, and what we may send at most.
namespace conformance {

/// Collectives, and the bytes that one device receives in them.
struct traffic {
  int steps = 0;
  std::int64_t bytes = 0;
  friend constexpr traffic operator+(traffic a, traffic b) { return {a.steps + b.steps, a.bytes + b.bytes}; }
  bool operator==(const traffic&) const = default;
  /// With what starting costs, in the planner's currency: a step more may pay, or a byte.
  constexpr std::int64_t cost() const { return bytes + steps * gshard::default_start_bytes; }
};

/// Bytes of a block of f32; i32 has as many.
template <class... Extents>
constexpr std::int64_t f32(Extents... extents) {
  return (std::int64_t(4) * ... * extents);
}

inline constexpr traffic nothing{};
/// `result`: bytes of the gathered block, over n devices.
constexpr traffic all_gather(std::int64_t result, int n) { return {1, result - result / n}; }
/// `block`: bytes that every device holds.
constexpr traffic all_reduce(std::int64_t block, int n) { return {1, 2 * (block * (n - 1) / n)}; }
constexpr traffic reduce_scatter(std::int64_t block, int n) { return {1, block * (n - 1) / n}; }
constexpr traffic all_to_all(std::int64_t block, int n) { return {1, block * (n - 1) / n}; }
constexpr traffic permute(std::int64_t block) { return {1, block}; }
/// A loop that passes a block round n devices.
constexpr traffic ring(std::int64_t block, int n) { return {n - 1, block * (n - 1)}; }

struct row {
  std::string_view source;
  std::string_view command;  // as it is typed
  traffic theirs;
  /// The shardings of all results; if empty, those of --to or --out.
  std::string_view result = {};
  /// Why ours is worse today, or empty. A row that has caught up must lose it.
  std::string_view gap = {};
};

/// Plans the rows, compares what they send with theirs, and what they compute with one device. In conformance_test.cpp.
void check(std::initializer_list<row> rows);

}  // namespace conformance

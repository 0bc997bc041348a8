// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/core/reshard/reshard.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>
#include <string_view>

// Cases from the test suites of other partitioners, in our shapes and letters: their traffic, which is the limit for ours.
namespace conformance {

/// Collectives, and the bytes that one device receives in them.
struct traffic {
  int steps = 0;
  std::int64_t bytes = 0;
  friend constexpr traffic operator+(traffic a, traffic b) { return {a.steps + b.steps, a.bytes + b.bytes}; }
  bool operator==(const traffic&) const = default;
  /// Includes the cost of starts, in the planner's unit, so that one more step may be worth fewer bytes.
  constexpr std::int64_t cost() const { return bytes + steps * gshard::default_start_bytes; }
};

/// The bytes of a block of f32. i32 has equally many.
template <class... Extents>
constexpr std::int64_t f32(Extents... extents) {
  return (std::int64_t(4) * ... * extents);
}

inline constexpr traffic nothing{};
/// `result`: the bytes of the gathered block, over n devices.
constexpr traffic all_gather(std::int64_t result, int n) { return {1, result - result / n}; }
/// `block`: the bytes on every device.
constexpr traffic all_reduce(std::int64_t block, int n) { return {1, 2 * (block * (n - 1) / n)}; }
constexpr traffic reduce_scatter(std::int64_t block, int n) { return {1, block * (n - 1) / n}; }
constexpr traffic all_to_all(std::int64_t block, int n) { return {1, block * (n - 1) / n}; }
constexpr traffic permute(std::int64_t block) { return {1, block}; }
/// A loop that passes a block around n devices.
constexpr traffic ring(std::int64_t block, int n) { return {n - 1, block * (n - 1)}; }

struct row {
  std::string_view source;
  std::string_view command;  // as on the command line
  traffic theirs;
  /// The shardings of all results. If empty: the shardings of --to or --out.
  std::string_view result = {};
  /// The reason why ours is worse today, or empty. A row that has caught up must remove it.
  std::string_view gap = {};
};

/// Plans the rows. Compares their traffic with that of the other partitioner, and their results with one device. Defined in
/// conformance_test.cpp.
void check(std::initializer_list<row> rows);

}  // namespace conformance

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Dims of a program and their extents: bound by letter, fixed, or derived from other dims.

#include <gshard/core/base/counting.hpp>
#include <gshard/core/base/list_view.hpp>
#include <gshard/core/base/packed_list.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 {

/// A dim of a program. A `bound` dim has a letter and gets its extent when the program starts. All others are expressions over earlier dims
/// of the program's table.
struct dim {
  enum class kind : std::uint8_t {
    bound,    // by letter
    fixed,    // number
    product,  // first * second
    ratio,    // max(1, ceil(number * first / (divisor * second))): the expert capacity of the paper, 2S/E
    linear,   // max(0, floor((first_times * first + second_times * second + number) / divisor)): sums, positions of a window
    rounded,  // max(number, first), rounded up to a multiple of divisor: capacities with a minimum and a multiple
    blocks,   // number * product of the extents of the mesh axes in the mask `first`: `number` for each block
  };
  kind what = kind::bound;
  char letter = 0;
  std::uint8_t first = 0, second = 0;
  bool known = false;       // bound: the extent is known at compile time, `number`
  std::int64_t number = 0;
  std::int64_t divisor = 1;
  std::int32_t first_times = 0, second_times = 0;

  constexpr bool operator==(const dim&) const = default;
};

struct fraction {
  std::int64_t number = 0, divisor = 1;

  constexpr bool operator==(const fraction&) const = default;
};
/// A number that is not negative, as a fraction: the last convergent of its continued fraction with a divisor of at most 2^20. Therefore
/// decimal numbers are exact: 1.8 is 9/5, although no double is.
constexpr fraction nearest_fraction(double x) {
  constexpr std::int64_t most = 1 << 20;
  fraction before{1, 0}, now{std::int64_t(x), 1};
  for (double rest = x - double(now.number); rest * double(most) >= 1;) {
    const double inverse = 1 / rest;
    const auto next = std::int64_t(inverse);
    const fraction closer{next * now.number + before.number, next * now.divisor + before.divisor};
    if (closer.divisor > most) break;
    before = now;
    now = closer;
    rest = inverse - double(next);
  }
  return now;
}

/// The extents of a program's dims, by letter: `dims{{'E', 16}, {'M', 512}}`.
struct dims {
  struct entry {
    char letter;
    std::int64_t extent;
  };
  static constexpr std::size_t most = 52;

  std::array<entry, most> entries{};
  std::size_t count = 0;
  char twice = 0;  // a letter that a list gave two extents

  constexpr dims() = default;
  constexpr dims(std::initializer_list<entry> list) {
    for (const entry& e : list) {
      if (has(e.letter) && find(e.letter) != e.extent) twice = e.letter;
      set(e.letter, e.extent);
    }
  }
  constexpr void set(char letter, std::int64_t extent) {
    for (std::size_t i = 0; i < count; ++i)
      if (entries[i].letter == letter) {
        entries[i].extent = extent;
        return;
      }
    if (count < most) entries[count++] = {letter, extent};
  }
  constexpr bool has(char letter) const {
    for (std::size_t i = 0; i < count; ++i)
      if (entries[i].letter == letter) return true;
    return false;
  }
  /// The extent of `letter`, or -1.
  constexpr std::int64_t find(char letter) const {
    for (std::size_t i = 0; i < count; ++i)
      if (entries[i].letter == letter) return entries[i].extent;
    return -1;
  }
};

/// The extent of a derived dim, given the extents of the dims before it and of the mesh axes. -1 if one of these dims has none;
/// `uncountable` if it is beyond the largest number. Axes without an extent count as one device.
constexpr std::int64_t derived_extent(const dim& d, list_view<std::int64_t> before, list_view<int> axes = {}) {
  const auto rounded_up = [](std::int64_t n, std::int64_t by) { return n == uncountable || n < 1 ? n : (n - 1) / by + 1; };
  switch (d.what) {
    case dim::kind::bound: return -1;
    case dim::kind::fixed: return d.number;
    case dim::kind::product:
      if (before[d.first] < 0 || before[d.second] < 0) return -1;
      return detail::saturating_product(before[d.first], before[d.second]);
    case dim::kind::ratio: {
      if (before[d.first] < 0 || before[d.second] < 0) return -1;
      const std::int64_t over = detail::saturating_product(d.number, before[d.first]);
      const std::int64_t under = detail::saturating_product(d.divisor, before[d.second]);
      const std::int64_t rounded = under > 0 ? rounded_up(over, under) : 1;
      return rounded > 0 ? rounded : 1;
    }
    case dim::kind::linear: {
      if (before[d.first] < 0 || (d.second_times != 0 && before[d.second] < 0)) return -1;
      std::int64_t sum = d.number, term = 0;
      bool wraps = __builtin_mul_overflow(std::int64_t(d.first_times), before[d.first], &term) || __builtin_add_overflow(sum, term, &sum);
      if (d.second_times != 0)
        wraps = wraps || __builtin_mul_overflow(std::int64_t(d.second_times), before[d.second], &term) ||
                __builtin_add_overflow(sum, term, &sum);
      return wraps ? uncountable : sum > 0 ? sum / d.divisor : 0;
    }
    case dim::kind::rounded: {
      if (before[d.first] < 0) return -1;
      const std::int64_t least = before[d.first] > d.number ? before[d.first] : d.number;
      return detail::saturating_product(rounded_up(least, d.divisor), d.divisor);
    }
    case dim::kind::blocks: {
      std::int64_t n = d.number;
      for (std::size_t a = 0; a < axes.size(); ++a)
        if (((d.first >> a) & 1u) && axes[a] > 0) n = detail::saturating_product(n, axes[a]);
      return n;
    }
  }
  return -1;
}

}}  // namespace gshard::v0

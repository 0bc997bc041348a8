// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/base/list_view.hpp>
#include <gshard/base/packed_list.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 {

/// A program-wide dimension. A `bound` dim has a letter and gets its extent when the program starts; the others are
/// expressions over dims before them in the program's table.
struct dim {
  enum class kind : std::uint8_t {
    bound,    // by letter
    fixed,    // number
    product,  // first * second
    ratio,    // max(1, ceil(number * first / (divisor * second))): the expert capacity of the paper, 2S/E
  };
  kind what = kind::bound;
  char letter = 0;
  std::uint8_t first = 0, second = 0;
  std::int64_t number = 0;  // bound: the extent if it is known at compile time, or 0
  std::int64_t divisor = 1;

  constexpr bool operator==(const dim&) const = default;
};

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
      const std::int64_t before = find(e.letter);
      if (before != -1 && before != e.extent) twice = e.letter;
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
  /// The extent of `letter`, or -1.
  constexpr std::int64_t find(char letter) const {
    for (std::size_t i = 0; i < count; ++i)
      if (entries[i].letter == letter) return entries[i].extent;
    return -1;
  }
};

/// The extent of a derived dim, given the extents of the dims before it.
constexpr std::int64_t derived_extent(const dim& d, list_view<std::int64_t> before) {
  switch (d.what) {
    case dim::kind::bound: return -1;
    case dim::kind::fixed: return d.number;
    case dim::kind::product: return before[d.first] * before[d.second];
    case dim::kind::ratio: {
      const std::int64_t over = d.number * before[d.first], under = d.divisor * before[d.second];
      const std::int64_t rounded = under > 0 ? (over + under - 1) / under : 1;
      return rounded > 0 ? rounded : 1;
    }
  }
  return -1;
}

}}  // namespace gshard::v0

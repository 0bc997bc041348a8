// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Names stored in place, for tables of names that are constant expressions.

#include <gshard/core/base/compiler.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 {

/// A name of at most `Capacity` characters, stored in place, so that tables of names can be constant expressions. Longer text is truncated;
/// check it with `fits` before.
template <std::size_t Capacity>
struct inplace_name {
  char text[Capacity]{};
  std::uint8_t length = 0;

  constexpr inplace_name() = default;
  constexpr inplace_name(std::string_view s) { append(s); }
  constexpr inplace_name(const char* s) { append(std::string_view(s)); }

  static constexpr bool fits(std::string_view s) { return s.size() <= Capacity; }

  constexpr inplace_name& append(std::string_view s) {
    const std::size_t room = Capacity - length, count = s.size() < room ? s.size() : room;
    const char* const from = s.data();
    char* const to = text + length;
    for (std::size_t i = 0; i < count; ++i) to[i] = from[i];
    length = std::uint8_t(length + count);
    return *this;
  }
  constexpr std::string_view view() const { return {text, length}; }
  constexpr bool empty() const { return length == 0; }
  constexpr bool operator==(const inplace_name& other) const {
    if (length != other.length) return false;
    for (std::size_t i = length; i-- > 0;)  // from the end: names in one scope have equal beginnings
      if (text[i] != other.text[i]) return false;
    return true;
  }
};

using axis_name = inplace_name<23>;
using tensor_name = inplace_name<63>;

}}  // namespace gshard::v0

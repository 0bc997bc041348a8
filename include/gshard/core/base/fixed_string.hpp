// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// String literals as template arguments, such as the equation of einsum<"GSM,ME->GSE">.

#include <gshard/core/base/compiler.hpp>

#include <concepts>
#include <cstddef>
#include <string_view>

namespace gshard { inline namespace v0 {

/// A string literal as a template argument: `einsum<"GSM,ME->GSE">`, `shard<"data">`. `N` counts the terminating zero, as in the literal
/// itself, so that compilers print it as text.
template <std::size_t N>
struct fixed_string {
  char text[N]{};

  consteval fixed_string(const char (&literal)[N]) {
    for (std::size_t i = 0; i < N; ++i) text[i] = literal[i];
  }
  constexpr explicit fixed_string(std::string_view s) {
    for (std::size_t i = 0; i + 1 < N; ++i) text[i] = s[i];
    text[N - 1] = 0;  // otherwise clang prints numbers
  }
  constexpr std::string_view view() const { return {text, N - 1}; }
  /// For a number, as in `mean<1>(x)`: no check accepts this text, so an error names the mistake.
  consteval fixed_string(std::integral auto) : fixed_string("<number>") {}
  constexpr bool operator==(const fixed_string&) const = default;
};

template <std::size_t N>
fixed_string(const char (&)[N]) -> fixed_string<N>;
fixed_string(std::integral auto) -> fixed_string<sizeof "<number>">;

/// A text of this length that is computed at compile time: `word<s.size()>(s)`.
template <std::size_t Length>
using word = fixed_string<Length + 1>;

}}  // namespace gshard::v0

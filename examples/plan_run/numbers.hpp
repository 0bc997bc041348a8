// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace plan_run {

/// Parses the whole text as a finite number. Returns nothing if it is none.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T n{};
  const auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (problem != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  if constexpr (std::floating_point<T>)
    if (!std::isfinite(n)) return std::nullopt;
  return n;
}

/// "a,b," gives "a", "b" and "".
inline std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(at, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace plan_run

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string_view>

/// True if a style sheet or script can be inlined in a page: it does not end its element, and loads nothing.
constexpr bool is_for_inside(std::string_view text) {
  for (const std::string_view forbidden : {"</", "<!--", "@import", "url(", "fetch(", "XMLHttpRequest", "https:", "innerHTML", "eval("})
    if (text.find(forbidden) != text.npos) return false;
  return text.ends_with('\n');
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/sim/report/page_style.hpp>

#include <cstddef>
#include <string_view>

#include "inside_page.hpp"

static_assert(is_for_inside(gshard::detail::page_style));
static_assert(is_for_inside(gshard::detail::page_light) && is_for_inside(gshard::detail::page_dark));

namespace {
constexpr int names(std::string_view colors) {
  int n = 0;
  for (std::size_t at = 0; (at = colors.find("--", at)) != colors.npos; at += 2) ++n;
  return n;
}
}  // namespace

static_assert(names(gshard::detail::page_light) == names(gshard::detail::page_dark), "every color has two");

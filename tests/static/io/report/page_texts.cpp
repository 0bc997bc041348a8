// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/io/report/page_texts.hpp>

#include <cstddef>
#include <string_view>

#include "inside_page.hpp"

namespace {

namespace texts = gshard::detail::page_texts;

static_assert(is_for_inside(texts::light_css) && is_for_inside(texts::dark_css) && is_for_inside(texts::page_css));
static_assert(is_for_inside(texts::page_js) && is_for_inside(texts::views_js) && is_for_inside(texts::mesh_js));
static_assert(is_for_inside(texts::timeline_js));
static_assert(is_for_inside(texts::history_css) && is_for_inside(texts::charts_js) && is_for_inside(texts::history_js));

constexpr int names(std::string_view colors) {
  int n = 0;
  for (std::size_t at = 0; (at = colors.find("--", at)) != colors.npos; at += 2) ++n;
  return n;
}
static_assert(names(texts::light_css) == names(texts::dark_css), "every color has two");

}  // namespace

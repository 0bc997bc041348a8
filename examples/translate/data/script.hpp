// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string_view>

#include "data/text.hpp"

namespace translate {

namespace detail {

struct script_range {
  char32_t first, last;
  std::string_view script;
};

// Letters and dependent vowels, sorted. Characters between the ranges have no script, or one that is not listed.
inline constexpr auto script_ranges = std::to_array<script_range>({
    {0x0041, 0x005a, "Latin"},      {0x0061, 0x007a, "Latin"},    {0x00aa, 0x00aa, "Latin"},
    {0x00ba, 0x00ba, "Latin"},      {0x00c0, 0x00d6, "Latin"},    {0x00d8, 0x00f6, "Latin"},
    {0x00f8, 0x02b8, "Latin"},      {0x0370, 0x03ff, "Greek"},    {0x0400, 0x052f, "Cyrillic"},
    {0x0531, 0x058f, "Armenian"},   {0x0591, 0x05f4, "Hebrew"},   {0x0620, 0x06ff, "Arabic"},
    {0x0700, 0x074f, "Syriac"},     {0x0750, 0x077f, "Arabic"},   {0x0780, 0x07bf, "Thaana"},
    {0x07c0, 0x07ff, "Nko"},        {0x08a0, 0x08ff, "Arabic"},   {0x0900, 0x0963, "Devanagari"},
    {0x0966, 0x097f, "Devanagari"}, {0x0980, 0x09ff, "Bengali"},  {0x0a00, 0x0a7f, "Gurmukhi"},
    {0x0a80, 0x0aff, "Gujarati"},   {0x0b00, 0x0b7f, "Oriya"},    {0x0b80, 0x0bff, "Tamil"},
    {0x0c00, 0x0c7f, "Telugu"},     {0x0c80, 0x0cff, "Kannada"},  {0x0d00, 0x0d7f, "Malayalam"},
    {0x0d80, 0x0dff, "Sinhala"},    {0x0e01, 0x0e5b, "Thai"},     {0x0e80, 0x0eff, "Lao"},
    {0x0f00, 0x0fff, "Tibetan"},    {0x1000, 0x109f, "Myanmar"},  {0x10a0, 0x10ff, "Georgian"},
    {0x1100, 0x11ff, "Hangul"},     {0x1200, 0x139f, "Ethiopic"}, {0x13a0, 0x13ff, "Cherokee"},
    {0x1400, 0x167f, "Canadian"},   {0x1780, 0x17ff, "Khmer"},    {0x1800, 0x18af, "Mongolian"},
    {0x18b0, 0x18ff, "Canadian"},   {0x19e0, 0x19ff, "Khmer"},    {0x1c50, 0x1c7f, "OlChiki"},
    {0x1c80, 0x1c8f, "Cyrillic"},   {0x1c90, 0x1cbf, "Georgian"}, {0x1d00, 0x1d25, "Latin"},
    {0x1e00, 0x1eff, "Latin"},      {0x1f00, 0x1fff, "Greek"},    {0x2c60, 0x2c7f, "Latin"},
    {0x2d00, 0x2d2f, "Georgian"},   {0x2d30, 0x2d7f, "Tifinagh"}, {0x2d80, 0x2ddf, "Ethiopic"},
    {0x2de0, 0x2dff, "Cyrillic"},   {0x3005, 0x3007, "CJK"},      {0x3041, 0x312f, "CJK"},
    {0x3130, 0x318f, "Hangul"},     {0x31f0, 0x31ff, "CJK"},      {0x3400, 0x4dbf, "CJK"},
    {0x4e00, 0x9fff, "CJK"},        {0xa640, 0xa69f, "Cyrillic"}, {0xa722, 0xa7ff, "Latin"},
    {0xa960, 0xa97f, "Hangul"},     {0xab30, 0xab6f, "Latin"},    {0xab70, 0xabbf, "Cherokee"},
    {0xac00, 0xd7ff, "Hangul"},     {0xf900, 0xfaff, "CJK"},      {0xfb00, 0xfb06, "Latin"},
    {0xfb13, 0xfb17, "Armenian"},   {0xfb1d, 0xfb4f, "Hebrew"},   {0xfb50, 0xfdff, "Arabic"},
    {0xfe70, 0xfefc, "Arabic"},     {0xff21, 0xff5a, "Latin"},    {0xff66, 0xff9f, "CJK"},
    {0x20000, 0x3ffff, "CJK"},
});

}  // namespace detail

/// The script of one character: "Latin", "Cyrillic", "CJK" for Han and kana, and so on. It is "" for punctuation, digits, spaces and
/// combining marks, which all scripts share, and "Other" for scripts that are not listed.
constexpr std::string_view script_of(char32_t point) {
  const auto after = std::upper_bound(detail::script_ranges.begin(), detail::script_ranges.end(), point,
                                      [](char32_t p, const detail::script_range& r) { return p < r.first; });
  if (after != detail::script_ranges.begin() && point <= std::prev(after)->last)
    return std::prev(after)->script;
  const bool shared = point < 0x370 || (point >= 0x2000 && point < 0x2c00) ||
                      (point >= 0x3000 && point < 0x3041) || (point >= 0xfe00 && point < 0xfe70) ||
                      point >= 0xff00;
  return shared ? std::string_view{} : std::string_view{"Other"};
}

/// The script of most characters of UTF-8 text: of two with equal counts, the earlier one. "Other" if there is none.
inline std::string_view script_of(std::string_view text) {
  std::array<std::size_t, detail::script_ranges.size() + 1> counts{};
  std::array<std::string_view, detail::script_ranges.size() + 1> names{};
  std::size_t distinct = 0;
  for (const char32_t point : code_points(text)) {
    const std::string_view script = script_of(point);
    if (script.empty()) continue;
    const auto end = names.begin() + static_cast<std::ptrdiff_t>(distinct);
    const auto slot = static_cast<std::size_t>(std::find(names.begin(), end, script) - names.begin());
    if (slot == distinct) names[distinct++] = script;
    ++counts[slot];
  }
  if (distinct == 0) return "Other";
  return names[static_cast<std::size_t>(std::max_element(counts.begin(), counts.end()) - counts.begin())];
}

}  // namespace translate

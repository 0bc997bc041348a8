// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

// The header can exist without its library being linked. In this case the build defines the macro as 0.
#if !defined(TRANSLATE_HAS_UTF8PROC)
#if __has_include(<utf8proc.h>)
#define TRANSLATE_HAS_UTF8PROC 1
#else
#define TRANSLATE_HAS_UTF8PROC 0
#endif
#endif

#if TRANSLATE_HAS_UTF8PROC
#include <utf8proc.h>

#include <cstdlib>
#include <memory>
#endif

namespace translate {

/// The code points of UTF-8 text. Nothing if it is not valid UTF-8: overlong forms, surrogates, or values above U+10FFFF.
inline std::optional<std::u32string> try_code_points(std::string_view text) {
  std::u32string points;
  points.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const std::size_t length = first < 0x80   ? 1
                               : first < 0xc2 ? 0
                               : first < 0xe0 ? 2
                               : first < 0xf0 ? 3
                               : first < 0xf5 ? 4
                                              : 0;
    if (length == 0 || i + length > text.size()) return std::nullopt;
    char32_t point = length == 1 ? first : first & (0xffU >> (length + 1));
    for (std::size_t j = 1; j < length; ++j) {
      const auto next = static_cast<unsigned char>(text[i + j]);
      if ((next & 0xc0U) != 0x80) return std::nullopt;
      point = point << 6 | (next & 0x3fU);
    }
    const bool overlong = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
    if (overlong || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return std::nullopt;
    points.push_back(point);
    i += length;
  }
  return points;
}

/// The code points of UTF-8 text. Throws std::runtime_error if it is not UTF-8.
inline std::u32string code_points(std::string_view text) {
  if (auto points = try_code_points(text)) return *std::move(points);
  throw std::runtime_error("this text is not UTF-8: '" + std::string(text) + "'");
}

/// Appends the UTF-8 form of one code point.
inline void append_utf8(std::string& text, char32_t point) {
  const auto append = [&](char32_t byte) {
    text.push_back(static_cast<char>(static_cast<unsigned char>(byte)));
  };
  if (point < 0x80) {
    append(point);
  } else if (point < 0x800) {
    append(0xc0 | point >> 6);
    append(0x80 | (point & 0x3f));
  } else if (point < 0x10000) {
    append(0xe0 | point >> 12);
    append(0x80 | (point >> 6 & 0x3f));
    append(0x80 | (point & 0x3f));
  } else {
    append(0xf0 | point >> 18);
    append(0x80 | (point >> 12 & 0x3f));
    append(0x80 | (point >> 6 & 0x3f));
    append(0x80 | (point & 0x3f));
  }
}

inline std::string to_utf8(std::u32string_view points) {
  std::string text;
  for (const char32_t point : points) append_utf8(text, point);
  return text;
}

/// Unicode's property White_Space.
constexpr bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

/// UTF-8 text without the white space at its ends.
inline std::string trimmed(std::string_view text) {
  const std::u32string points = code_points(text);
  std::u32string_view rest = points;
  while (!rest.empty() && is_space(rest.front())) rest.remove_prefix(1);
  while (!rest.empty() && is_space(rest.back())) rest.remove_suffix(1);
  return to_utf8(rest);
}

/// Unicode normal form C of UTF-8 text; the text itself if built without utf8proc.
inline std::string nfc(std::string_view text) {
#if TRANSLATE_HAS_UTF8PROC
  utf8proc_uint8_t* out = nullptr;
  const auto length = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                   static_cast<utf8proc_ssize_t>(text.size()), &out,
                                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(out, &std::free);
  if (length < 0) throw std::runtime_error(utf8proc_errmsg(length) + (": '" + std::string(text) + "'"));
  return {reinterpret_cast<const char*>(out), static_cast<std::size_t>(length)};
#else
  return std::string(text);
#endif
}

}  // namespace translate

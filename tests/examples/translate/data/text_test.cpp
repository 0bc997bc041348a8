// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "data/text.hpp"

#include <doctest/doctest.h>

namespace tr = translate;

namespace {

TEST_CASE("text: every code point survives UTF-8, and only they do") {
  for (char32_t c = 0; c <= 0x110000; ++c) {
    const bool scalar = c < 0x110000 && (c < 0xd800 || c >= 0xe000);
    const std::string text = tr::to_utf8(std::u32string(1, c));
    const auto points = tr::try_code_points(text);
    if (points.has_value() != scalar || (scalar && *points != std::u32string(1, c))) {
      CAPTURE(static_cast<std::uint32_t>(c));
      FAIL_CHECK("UTF-8 round trip");
    }
  }
}

TEST_CASE("text: what is not UTF-8 is refused") {
  for (const char* bad :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x80\x80", "\xe2\x82", "\xed\xa0\x80",
        "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "ab\xe2"}) {
    CHECK_FALSE(tr::try_code_points(bad).has_value());
    CHECK_THROWS_AS(tr::code_points(bad), std::runtime_error);
  }
  CHECK(tr::code_points("aß€𝄞") == U"aß€𝄞");
}

TEST_CASE("text: white space of any script is trimmed at the ends only") {
  CHECK(tr::trimmed("\t \xc2\xa0"
                    "a b\xe3\x80\x80\n") == "a b");
  CHECK(tr::trimmed(" \n").empty());
  CHECK(tr::trimmed("").empty());
}

TEST_CASE("text: normal form C") {
  CHECK(tr::nfc("Eesti").compare("Eesti") == 0);
  CHECK(tr::nfc("").empty());
#if TRANSLATE_HAS_UTF8PROC
  CHECK(tr::nfc("A\xcc\x8aland") == "Åland");
  CHECK(tr::nfc("ﬁ½①") == "ﬁ½①");
  CHECK_THROWS_AS(tr::nfc("\xff"), std::runtime_error);
#endif
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "data/script.hpp"

#include <doctest/doctest.h>

#include <utility>

namespace tr = translate;

namespace {

TEST_CASE("script: the ranges are sorted and apart") {
  char32_t last = 0;
  for (const auto& range : tr::detail::script_ranges) {
    CHECK(range.first > last);
    CHECK(range.last >= range.first);
    last = range.last;
  }
}

TEST_CASE("script: names of countries in their own scripts") {
  using expectation = std::pair<const char*, const char*>;
  for (const auto& [text, script] : {expectation{"Österreich", "Latin"},
                                     {"Việt Nam", "Latin"},
                                     {"Ўзбекистон", "Cyrillic"},
                                     {"العربية", "Arabic"},
                                     {"ኢትዮጵያ", "Ethiopic"},
                                     {"भारत", "Devanagari"},
                                     {"日本", "CJK"},
                                     {"ノルウェー", "CJK"},
                                     {"বাংলাদেশ", "Bengali"},
                                     {"Ελλάδα", "Greek"},
                                     {"ישראל", "Hebrew"},
                                     {"ประเทศไทย", "Thai"},
                                     {"대한민국", "Hangul"},
                                     {"საქართველო", "Georgian"},
                                     {"Հայաստան", "Armenian"},
                                     {"இலங்கை", "Tamil"},
                                     {"భారతదేశం", "Telugu"},
                                     {"កម្ពុជា", "Khmer"}}) {
    CAPTURE(text);
    CHECK(tr::script_of(std::string_view(text)) == script);
  }
}

TEST_CASE("script: most characters decide, and what all scripts share does not count") {
  CHECK(tr::script_of(std::string_view("Россия (RU)")) == "Cyrillic");
  CHECK(tr::script_of(std::string_view("(1993-1994), ---- ab я")) == "Latin");
  CHECK(tr::script_of(std::string_view("яb")) == "Cyrillic");
  CHECK(tr::script_of(std::string_view("12 – 14")) == "Other");
  CHECK(tr::script_of(std::string_view("")) == "Other");
}

}  // namespace

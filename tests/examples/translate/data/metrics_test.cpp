// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "data/metrics.hpp"

#include <doctest/doctest.h>

namespace tr = translate;

namespace {

double chrf_of(std::string_view hypothesis, std::string_view reference) {
  tr::chrf c;
  c.add(hypothesis, reference);
  return c.score();
}

TEST_CASE("chrF: equal texts score 100, texts without a common character 0") {
  for (const char* text : {"a", "ab", "Eesti Vabariik", "भारत"}) {
    CHECK(chrf_of(text, text) == doctest::Approx(100));
    CHECK(chrf_of(text, "xyz") == 0);
    CHECK(chrf_of("", text) == 0);
    CHECK(chrf_of(text, "") == 0);
  }
  CHECK(tr::chrf().score() == 0);
}

TEST_CASE("chrF: by hand") {
  // "abc" for "abd": 2 of 3, 1 of 2, 0 of 1 n-grams in common, on both sides: P = R = F = (2/3 + 1/2 + 0)
  // / 3.
  CHECK(chrf_of("abc", "abd") == doctest::Approx(100.0 * 7 / 18));
  // "ab" for "abcd": orders 1 and 2 occur on both sides: P = 1; R = (2/4 + 1/3) / 2 = 5/12; F = 5 P R / (4 P
  // + R).
  CHECK(chrf_of("ab", "abcd") == doctest::Approx(100.0 * 5 * (5.0 / 12) / (4 + 5.0 / 12)));
  // Swapped, P = 5/12 and R = 1: recall weighs more.
  CHECK(chrf_of("abcd", "ab") == doctest::Approx(100.0 * 5 * (5.0 / 12) / (4 * 5.0 / 12 + 1)));
  // An n-gram is matched at most as often as it occurs on both sides: "aaa" for "aa": P = (2/3 + 1/2) / 2, R = 1.
  CHECK(chrf_of("aaa", "aa") == doctest::Approx(100.0 * 5 * (7.0 / 12) / (4 * 7.0 / 12 + 1)));
}

TEST_CASE("chrF: white space of any kind does not count, characters are code points") {
  CHECK(chrf_of("a bc", "abc") == doctest::Approx(100));
  CHECK(chrf_of("a\xe3\x80\x80\tb",
                "a\xc2\xa0"
                "b") == doctest::Approx(100));
  // Both begin with the byte C3, which is no common character.
  CHECK(chrf_of("Å", "ß") == 0);
}

TEST_CASE("chrF: counts are summed over the corpus, not scores averaged") {
  // Order 1: 1 + 2 of 1 + 3 n-grams; order 2: 1 of 2; order 3: 0 of 1. The first reference has no n-grams of
  // order 2.
  tr::chrf c;
  c.add("a", "a");
  c.add("abc", "abd");
  CHECK(c.score() == doctest::Approx(100.0 * (3.0 / 4 + 1.0 / 2) / 3));
  // n-grams of a hypothesis longer than its reference do not count, as in sacrebleu 2.
  tr::chrf d;
  d.add("ab", "a");
  d.add("xyz", "xyz");
  CHECK(d.score() == doctest::Approx(100.0 * 5 * (14.0 / 15) / (4 * 14.0 / 15 + 1)));
}

TEST_CASE("metrics: groups are scored apart and averaged each once") {
  const std::vector<tr::pair> references = {
      {"de", "x", "ab", "Latin"}, {"de", "y", "abd", "Latin"}, {"ru", "z", "Chad", "Cyrillic"}};
  const std::vector<std::string> hypotheses = {"ab", "abc", "Chad"};
  const auto by_locale = tr::evaluate_by(hypotheses, references, &tr::pair::locale);
  REQUIRE(by_locale.size() == 2);
  CHECK(by_locale.at("de").count == 2);
  CHECK(by_locale.at("de").exact == 0.5);
  CHECK(by_locale.at("de").chrf == doctest::Approx(100.0 * (4.0 / 5 + 2.0 / 3 + 0) / 3));
  CHECK(by_locale.at("de").sentence_chrf == doctest::Approx((100 + 100.0 * 7 / 18) / 2));
  CHECK(by_locale.at("ru").exact == 1);
  CHECK(tr::evaluate_by(hypotheses, references, &tr::pair::script).at("Cyrillic").chrf ==
        doctest::Approx(100));
  CHECK(tr::evaluate(hypotheses, references).exact == doctest::Approx(2.0 / 3));
  const tr::score mean = tr::macro_average(by_locale);
  CHECK(mean.count == 3);
  CHECK(mean.exact == doctest::Approx(0.75));
  CHECK(mean.chrf == doctest::Approx((by_locale.at("de").chrf + 100) / 2));
  CHECK_THROWS_AS(tr::evaluate(std::vector<std::string>{"one"}, references), std::runtime_error);
  CHECK(tr::evaluate({}, {}).count == 0);
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "data/vocabulary.hpp"

#include <doctest/doctest.h>

#include <functional>

#include "fixture.hpp"

namespace tr = translate;

namespace {

using trainer = std::function<std::unique_ptr<tr::vocabulary>(std::span<const tr::pair>)>;

// The properties of every vocabulary, for each way to train one.
const std::vector<trainer> trainers = {
    [](std::span<const tr::pair> pairs) { return tr::train_character_vocabulary(pairs); },
    [](std::span<const tr::pair> pairs) { return tr::train_vocabulary(pairs, 200); }};

TEST_CASE("vocabulary: targets are written exactly, by ids within the vocabulary and not special") {
  auto corpus = fixture::toy_corpus(10, 60);
  corpus.push_back({"x", "rare", "Two  spaces, ½ ﬁ \"quoted\"; İ = #1 ~", "Latin"});
  for (const trainer& train : trainers) {
    const auto v = train(corpus);
    for (const tr::pair& p : corpus) {
      const auto ids = v->encode(p.target);
      CHECK(v->decode(ids) == p.target);
      for (const std::int32_t id : ids) CHECK((id >= tr::token::specials && id < v->size()));
    }
  }
}

TEST_CASE("vocabulary: decoding stops at the first end and passes over what says nothing") {
  for (const trainer& train : trainers) {
    const auto v = train(fixture::toy_corpus(10, 60));
    std::vector<std::int32_t> ids = v->encode("Thing7 of Ålands");
    ids.insert(ids.begin(), tr::token::begin);
    ids.insert(ids.end(), {tr::token::padding, v->size(), -1, 1 << 30, tr::token::end});
    const auto more = v->encode("Thing8");
    ids.insert(ids.end(), more.begin(), more.end());
    CHECK(v->decode(ids) == "Thing7 of Ålands");
    CHECK(v->decode({}).empty());
    CHECK(v->encode("").empty());
  }
}

TEST_CASE("vocabulary: an unknown character is the unknown id, and reads as U+FFFD") {
  for (const trainer& train : trainers) {
    const auto v = train(fixture::toy_corpus(10, 60));
    const auto ids = v->encode("Thing 漢");
    CHECK(ids.back() == tr::token::unknown);
    CHECK(v->decode(ids) == "Thing \xef\xbf\xbd");
  }
}

TEST_CASE("vocabulary: the same pairs give the same bytes, and the bytes the same vocabulary") {
  const auto corpus = fixture::toy_corpus(10, 60);
  for (const trainer& train : trainers) {
    const auto v = train(corpus);
    CHECK(v->serialize() == train(corpus)->serialize());
    const auto loaded = tr::load_vocabulary(v->serialize());
    CHECK(loaded->serialize() == v->serialize());
    CHECK(loaded->size() == v->size());
    for (const tr::pair& p : corpus) CHECK(loaded->encode(p.source) == v->encode(p.source));
  }
}

TEST_CASE("vocabulary: characters are kept from a frequency on, those of targets always") {
  const std::vector<tr::pair> corpus(3, {"x", "яя б", "a", "Cyrillic"});
  const auto v = tr::train_character_vocabulary(corpus, 5);
  CHECK(v->encode("яба") == std::vector<std::int32_t>{4, tr::token::unknown, tr::token::unknown});
  CHECK(v->decode(v->encode("a")) == "a");
  CHECK(v->size() == tr::token::specials + 2);
}

TEST_CASE("vocabulary: bytes that are none are refused") {
  for (const char* bytes : {"", "x", "characters", "characters\naa", "characters\n\xff", "sentencepiece\n",
                            "sentencepiece\nnot a model"}) {
    CAPTURE(bytes);
    CHECK_FALSE(fixture::error_of([&] { tr::load_vocabulary(bytes); }).empty());
  }
}

#if TRANSLATE_HAS_SENTENCEPIECE
TEST_CASE("vocabulary: pieces are shorter than characters, and too few of them are refused") {
  const auto corpus = fixture::toy_corpus(10, 60);
  const auto v = tr::train_vocabulary(corpus, 200);
  CHECK(v->size() <= 200);
  CHECK(v->encode("Thing7").size() < 6);
  CHECK(fixture::error_of([&] {
          tr::train_vocabulary(corpus, 10);
        }).find("cannot train 10 pieces on 600 pairs") != std::string::npos);
}
#endif

}  // namespace

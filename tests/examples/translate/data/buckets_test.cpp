// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "data/buckets.hpp"

#include <doctest/doctest.h>

#include <random>

#include "data/vocabulary.hpp"
#include "fixture.hpp"

namespace tr = translate;

namespace {

TEST_CASE("buckets: rising shapes of multiples, about as many tokens each, which hold their quantile") {
  const auto seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (int repeat = 0; repeat < 50; ++repeat) {
    std::vector<tr::encoded_pair> pairs(1 + random() % 500);
    for (auto& p : pairs) {
      p.source.assign(random() % 60, 5);
      p.target.assign(random() % 30, 6);
    }
    tr::bucket_options options;
    options.length_multiple = 1 + random() % 8;
    options.sequences_multiple = 1 + random() % 8;
    options.tokens = 1000;
    options.quantiles = {1.0, 0.5};
    const auto buckets = tr::choose_buckets(pairs, options);
    REQUIRE((buckets.size() == 1 || buckets.size() == 2));
    for (const tr::bucket& b : buckets) {
      CHECK(b.source_length % options.length_multiple == 0);
      CHECK(b.target_length % options.length_multiple == 0);
      CHECK(b.sequences % options.sequences_multiple == 0);
      CHECK(b.sequences >= options.sequences_multiple);
      const auto width = b.source_length + b.target_length;
      CHECK((b.sequences + options.sequences_multiple) * width > options.tokens);
      CHECK((b.sequences * width <= options.tokens || b.sequences == options.sequences_multiple));
    }
    CHECK(buckets.front().source_length <= buckets.back().source_length);
    CHECK(buckets.front().target_length <= buckets.back().target_length);
    for (const auto& p : pairs) CHECK(buckets.back().fits(p));
  }
}

TEST_CASE("buckets: a target needs room for its end") {
  const tr::bucket b{4, 4, 1};
  CHECK(b.fits({{5, 5, 5, 5}, {5, 5, 5}}));
  CHECK_FALSE(b.fits({{5, 5, 5, 5}, {5, 5, 5, 5}}));
  CHECK_FALSE(b.fits({{5, 5, 5, 5, 5}, {5}}));
}

TEST_CASE("buckets: pairs are encoded in order") {
  const auto corpus = fixture::toy_corpus(2, 20);
  const auto v = tr::train_character_vocabulary(corpus, 1);
  const auto encoded = tr::encode(*v, corpus);
  REQUIRE(encoded.size() == corpus.size());
  for (std::size_t i = 0; i < corpus.size(); ++i) {
    CHECK(v->decode(encoded[i].source) == corpus[i].source);
    CHECK(v->decode(encoded[i].target) == corpus[i].target);
  }
}

TEST_CASE("buckets: nothing to choose from, and options out of range, are refused") {
  const std::vector<tr::encoded_pair> one(1);
  CHECK_THROWS_AS(tr::choose_buckets({}), std::runtime_error);
  CHECK_THROWS_AS(tr::choose_buckets(one, {{}, 4, 100, 1}), std::runtime_error);
  CHECK_THROWS_AS(tr::choose_buckets(one, {{1.5}, 4, 100, 1}), std::runtime_error);
  CHECK_THROWS_AS(tr::choose_buckets(one, {{0.5}, 0, 100, 1}), std::runtime_error);
  CHECK_THROWS_AS(tr::choose_buckets(one, {{0.5}, 4, 100, 0}), std::runtime_error);
}

}  // namespace

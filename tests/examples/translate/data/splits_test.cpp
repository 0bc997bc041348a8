// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "data/splits.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "fixture.hpp"

namespace tr = translate;

namespace {

using identity = std::tuple<std::string, std::string, std::string>;

std::set<identity> identities(const std::vector<tr::pair>& pairs) {
  std::set<identity> ids;
  for (const tr::pair& p : pairs) ids.emplace(p.locale, p.source, p.target);
  return ids;
}

const tr::split_options options{{"l3", "l7"}, 0.04, 0.05};

TEST_CASE("splits: every pair is in exactly one part") {
  const auto corpus = fixture::toy_corpus(20, 300);
  const tr::splits s = tr::split(corpus, options);
  std::size_t total = 0;
  std::set<identity> together;
  for (const auto* part : {&s.train, &s.languages.all, &s.terms.all, &s.pairs.all}) {
    CHECK_FALSE(part->empty());
    total += part->size();
    together.merge(identities(*part));
  }
  CHECK(total == corpus.size());
  CHECK(together == identities(corpus));
}

TEST_CASE("splits: held-out languages and terms do not occur in training, held-out pairs neither") {
  const tr::splits s = tr::split(fixture::toy_corpus(20, 300), options);
  std::set<std::string> locales, terms;
  std::set<std::pair<std::string, std::string>> pairs;
  for (const tr::pair& p : s.train) {
    locales.insert(p.locale);
    terms.insert(p.target);
    pairs.emplace(p.locale, p.target);
  }
  CHECK(locales.size() == 18);
  for (const tr::pair& p : s.languages.all) CHECK_FALSE(locales.contains(p.locale));
  for (const tr::pair& p : s.terms.all) CHECK_FALSE(terms.contains(p.target));
  for (const tr::pair& p : s.pairs.all) {
    CHECK(terms.contains(p.target));
    CHECK_FALSE(pairs.contains({p.locale, p.target}));
  }
  const auto share = static_cast<double>(s.pairs.all.size()) / static_cast<double>(s.train.size());
  CHECK(share == doctest::Approx(0.05).epsilon(0.3));
}

TEST_CASE("splits: clean pairs are exactly those that are neither known from training nor English") {
  auto corpus = fixture::toy_corpus(20, 300);
  for (std::size_t i = 0; i < corpus.size(); i += 17) corpus[i].source = corpus[i].target;
  const tr::splits s = tr::split(corpus, options);
  std::set<std::string> known;
  for (const tr::pair& p : s.train) known.insert(p.source);
  for (const tr::held_out* part : {&s.languages, &s.terms, &s.pairs}) {
    std::vector<tr::pair> expected;
    std::copy_if(part->all.begin(), part->all.end(), std::back_inserter(expected),
                 [&](const tr::pair& p) { return !known.contains(p.source) && p.source != p.target; });
    CHECK(part->clean == expected);
    CHECK(part->clean.size() < part->all.size());
  }
}

TEST_CASE("splits: a pair keeps its part when the order changes and others come or go") {
  auto corpus = fixture::toy_corpus(20, 300);
  const tr::splits before = tr::split(corpus, options);
  std::reverse(corpus.begin(), corpus.end());
  std::erase_if(corpus, [](const tr::pair& p) { return p.locale == "l1"; });
  const auto more = fixture::toy_corpus(22, 320);
  corpus.insert(corpus.end(), more.end() - 600, more.end());
  const tr::splits after = tr::split(corpus, options);
  const auto moved = [](const std::vector<tr::pair>& from, const std::vector<tr::pair>& to) {
    const auto a = identities(from), b = identities(to);
    std::vector<identity> both;
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
    return both.size();
  };
  CHECK(moved(before.train, after.train) > 4000);
  for (const auto* other : {&after.languages.all, &after.terms.all, &after.pairs.all}) {
    CHECK(moved(before.train, *other) == 0);
  }
  for (const auto* other : {&before.languages.all, &before.terms.all, &before.pairs.all}) {
    CHECK(moved(*other, after.train) == 0);
  }
}

}  // namespace

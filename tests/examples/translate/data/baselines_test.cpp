// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "data/baselines.hpp"

#include <doctest/doctest.h>

#include "fixture.hpp"

namespace tr = translate;

namespace {

TEST_CASE("baselines: copying copies") {
  CHECK(tr::copy_source("Eesti") == "Eesti");
}

TEST_CASE("nearest neighbor: the most similar source answers, in whatever language") {
  const std::vector<tr::pair> train = {
      {"et", "Rootsi", "Sweden", "Latin"},    {"fi", "Ruotsi", "Sweden", "Latin"},
      {"de", "Schweden", "Sweden", "Latin"},  {"de", "Schweiz", "Switzerland", "Latin"},
      {"ru", "Швеция", "Sweden", "Cyrillic"}, {"ru", "Швейцария", "Switzerland", "Cyrillic"}};
  const tr::nearest_neighbor nn(train);
  CHECK(nn.translate("Schwedn") == "Sweden");
  CHECK(nn.translate("Schweitz") == "Switzerland");
  CHECK(nn.translate("Швейцарія") == "Switzerland");
  CHECK(nn.translate("Швеція") == "Sweden");
}

TEST_CASE("nearest neighbor: knows every training source") {
  const auto train = fixture::toy_corpus(10, 60);
  const tr::nearest_neighbor nn(train);
  for (const tr::pair& p : train) CHECK(nn.translate(p.source) == p.target);
}

TEST_CASE("nearest neighbor: rare n-grams weigh more, lengths are evened out") {
  std::vector<tr::pair> train(20, {"x", "", "island", "Latin"});
  for (std::size_t i = 0; i < train.size(); ++i) train[i].source = "saar " + std::to_string(i);
  train.push_back({"x", "kagu saar", "south-east", "Latin"});
  CHECK(tr::nearest_neighbor(train).translate("saar kagu") == "south-east");
}

TEST_CASE("nearest neighbor: of one source's targets the most frequent one is given") {
  const std::vector<tr::pair> train = {{"a", "Kongo", "Congo (river)", "Latin"},
                                       {"b", "Kongo", "Congo", "Latin"},
                                       {"c", "Kongo", "Congo", "Latin"}};
  const tr::nearest_neighbor nn(train);
  CHECK(nn.translate("Kongo") == "Congo");
  CHECK(nn.translate("日本") == "Congo");
  CHECK(nn.translate("") == "Congo");
  CHECK_THROWS_AS(tr::nearest_neighbor({}), std::runtime_error);
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "data/corpus.hpp"

#include <doctest/doctest.h>

#include "fixture.hpp"

namespace tr = translate;

namespace {

TEST_CASE("corpus: reads the wanted domains and locales, trimmed, sorted, each source once") {
  const fixture::directory data;
  data.add("fi", "iso_3166-1", fixture::catalogue({{"Estonia", " Viro\n"}, {"Sweden", "Ruotsi"}}));
  data.add("et", "iso_3166-1",
           fixture::catalogue({{"Sweden", "Rootsi"}, {"Swedish", "rootsi"}}, fixture::byte_order::big));
  data.add("et", "iso_639-2",
           fixture::catalogue({{"Kingdom of Sweden", "Rootsi"}, {"Sweden", "Rootsi"}, {"Blank", " "}}));
  data.add("et", "iso_3166-2", fixture::catalogue({{"Harju", "Harjumaa"}}));
  data.add("et", "bash", fixture::catalogue({{"file", "fail"}}));
  data.add("mo", "iso_3166-1", fixture::catalogue({{"Sweden", "Суедия"}}));
  const std::vector<tr::pair> expected = {{"et", "Rootsi", "Sweden", "Latin"},
                                          {"et", "rootsi", "Swedish", "Latin"},
                                          {"fi", "Ruotsi", "Sweden", "Latin"},
                                          {"fi", "Viro", "Estonia", "Latin"}};
  tr::corpus_options options;
  options.directory = data.path();
  CHECK(tr::read_corpus(options) == expected);
}

#if TRANSLATE_HAS_UTF8PROC
TEST_CASE("corpus: two spellings of one text are one") {
  const fixture::directory data;
  data.add("sv", "iso_3166-1", fixture::catalogue({{"Aland", "\xc3\x85land"}}));
  data.add("sv", "iso_639-2", fixture::catalogue({{"Aland", "A\xcc\x8aland"}}));
  tr::corpus_options options;
  options.directory = data.path();
  CHECK(tr::read_corpus(options) == std::vector<tr::pair>{{"sv", "Åland", "Aland", "Latin"}});
}
#endif

TEST_CASE("corpus: says what to do when there are no catalogues, and which one is damaged") {
  const fixture::directory data;
  tr::corpus_options options;
  const auto error = [&] { return fixture::error_of([&] { tr::read_corpus(options); }); };
  for (const auto& path : {data.path(), data.path() / "absent"}) {
    options.directory = path;
    CHECK(error().find(path.string() + ": ") == 0);
    CHECK(error().find("apt-get install iso-codes") != std::string::npos);
    CHECK(error().find("--data DIR") != std::string::npos);
  }
  options.directory = data.path();
  data.add("et", "iso_3166-1",
           fixture::catalogue({{"Chad",
                                "T\x9a"
                                "aad"}}));
  CHECK(error().find("iso_3166-1.mo: the entry 'Chad' is not UTF-8") != std::string::npos);
  data.add("et", "iso_3166-1", "no catalogue");
  CHECK(error().find("iso_3166-1.mo: not a usable gettext catalogue") != std::string::npos);
}

}  // namespace

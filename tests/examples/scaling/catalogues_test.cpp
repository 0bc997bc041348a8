// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "scaling/catalogues.hpp"

#include "../translate/data/fixture.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

TEST_CASE("catalogues: plain texts lose the mark of their access key; others are refused") {
  CHECK(scaling::plain_text("_Open file") == "Open file");
  CHECK(scaling::plain_text("  Beenden ") == "Beenden");
  for (const char* refused : {"", "%d files", "<b>Bold</b>", "two\nlines", "a_name_of_a_variable", "{name}", "_", "C:\\Windows"})
    CHECK(scaling::plain_text(refused) == std::nullopt);
  CHECK(scaling::plain_text(std::string(61, 'x')) == std::nullopt);
  CHECK(scaling::plain_text("\xff") == std::nullopt);
  CHECK(scaling::has_a_word("go"));
  CHECK(!scaling::has_a_word("3 x 4"));
}

TEST_CASE("catalogues: pairs of all languages but English, without untranslated messages") {
  const fs::path root = fs::temp_directory_path() / "gshard_catalogues_test";
  fs::remove_all(root);
  const auto write = [&](const std::string& locale, const std::string& name, const std::vector<translate::message>& messages) {
    fs::create_directories(root / locale / "LC_MESSAGES");
    std::ofstream(root / locale / "LC_MESSAGES" / name, std::ios::binary) << fixture::catalogue(messages);
  };
  write("de", "editor.mo", {{"_Open", "Ö_ffnen"}, {"Quit", "Quit"}, {"Saved %d", "%d gespeichert"}});
  write("de", "iso_639-2.mo", {{"German", "Deutsch"}});
  write("en_GB", "editor.mo", {{"Color", "Colour"}});
  write("fr", "player.mo", {{"_Play", "_Lire"}, {"Listen", "Lire"}});
  const std::vector<translate::pair> pairs = scaling::read_catalogues(root);
  REQUIRE(pairs.size() == 2);
  CHECK(pairs[0].locale == "de");
  CHECK(pairs[0].source == "Öffnen");
  CHECK(pairs[0].target == "Open");
  CHECK(pairs[1].target == "Play");  // the shorter one of two English texts for one source
  fs::remove_all(root);
  CHECK_THROWS_WITH_AS(scaling::read_catalogues(root), doctest::Contains("--catalogues DIR"), std::runtime_error);
}

}  // namespace

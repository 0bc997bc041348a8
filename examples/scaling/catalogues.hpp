// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The second task: translate all messages of gettext catalogues, such as those of desktop programs, into English.

#include "data/catalogue.hpp"
#include "data/corpus.hpp"
#include "data/text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace scaling {

using translate::pair;

/// A message as plain text: without the mark of an access key ("_Open"), in normal form C, trimmed. Nothing if it has a placeholder,
/// markup, an address, an escape or several lines, or is longer than 60 bytes.
inline std::optional<std::string> plain_text(std::string_view message) {
  constexpr std::string_view not_plain = "%{}<>&\\\n\t\r|=$@#~^`[]*/";
  if (message.empty() || message.find_first_of(not_plain) != message.npos) return std::nullopt;
  std::string text;
  for (const char c : message)
    if (c != '_') text += c;
  if (text.size() + 1 < message.size()) return std::nullopt;  // several marks: part of a program's name
  if (!translate::try_code_points(text)) return std::nullopt;
  text = translate::trimmed(translate::nfc(text));
  if (text.empty() || text.size() > 60) return std::nullopt;
  return text;
}

/// True if the text has two letters in a row, as English text must.
inline bool has_a_word(std::string_view text) {
  const auto letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  return std::adjacent_find(text.begin(), text.end(), [&](char a, char b) { return letter(a) && letter(b); }) != text.end();
}

/// True for variants of English, and for locales whose catalogues are no translations.
inline bool is_left_out(std::string_view locale) {
  return locale == "en" || locale.starts_with("en_") || locale.starts_with("en@") || locale == "C";
}

/// The pairs (message, English) of all catalogues below `directory`, sorted and deduplicated as by `translate::read_corpus`. Messages that
/// equal their English are left out, as most are names. Throws std::runtime_error for a damaged file, or if there is no pair.
inline std::vector<pair> read_catalogues(const std::filesystem::path& directory) {
  namespace fs = std::filesystem;
  std::error_code unreadable;
  std::vector<pair> corpus;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, unreadable)) {
    const std::string locale = entry.path().filename().string();
    std::error_code absent;
    if (is_left_out(locale) || !fs::is_directory(entry.path() / "LC_MESSAGES", absent)) continue;
    for (const fs::directory_entry& file : fs::directory_iterator(entry.path() / "LC_MESSAGES")) {
      if (file.path().extension() != ".mo" || file.path().filename().string().starts_with("iso_")) continue;
      for (const translate::message& m : translate::read_catalogue(file.path())) {
        std::optional<std::string> source = plain_text(m.text), target = plain_text(m.id);
        if (!source || !target || *source == *target || !has_a_word(*target)) continue;
        pair p{locale, std::move(*source), std::move(*target), {}};
        p.script = translate::script_of(p.source);
        corpus.push_back(std::move(p));
      }
    }
  }
  if (corpus.empty())
    throw std::runtime_error(directory.string() + (unreadable ? ": " + unreadable.message() : ": holds no catalogues with plain messages") +
                             "; name another directory (--catalogues DIR)");
  translate::sort_and_deduplicate(corpus);
  return corpus;
}

}  // namespace scaling

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "data/corpus.hpp"
#include "data/text.hpp"
#include "data/vocabulary_interface.hpp"

namespace translate {

/// Every piece is one character.
class character_vocabulary final : public vocabulary {
 public:
  static constexpr std::string_view tag = "characters\n";

  /// `characters` in the order of their ids; throws std::runtime_error if one occurs twice.
  explicit character_vocabulary(std::u32string characters) : characters_(std::move(characters)) {
    for (const char32_t c : characters_) {
      if (!ids_.emplace(c, token::specials + static_cast<std::int32_t>(ids_.size())).second) {
        throw std::runtime_error("character vocabulary: a character occurs twice; these bytes are damaged");
      }
    }
  }

  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> ids;
    for (const char32_t c : code_points(text)) {
      const auto found = ids_.find(c);
      ids.push_back(found == ids_.end() ? token::unknown : found->second);
    }
    return ids;
  }

  std::string decode(std::span<const std::int32_t> ids) const override {
    std::string text;
    for (const std::int32_t id : ids) {
      if (id == token::end) break;
      if (id == token::unknown) text += unknown_text;
      if (id >= token::specials && id < size()) {
        append_utf8(text, characters_[static_cast<std::size_t>(id - token::specials)]);
      }
    }
    return text;
  }

  std::int32_t size() const override {
    return token::specials + static_cast<std::int32_t>(characters_.size());
  }
  std::string serialize() const override { return std::string(tag) + to_utf8(characters_); }

 private:
  std::u32string characters_;
  std::unordered_map<char32_t, std::int32_t> ids_;
};

/// The characters of the pairs with their counts, the most frequent first.
inline std::vector<std::pair<char32_t, std::int64_t>> character_frequencies(std::span<const pair> pairs) {
  std::map<char32_t, std::int64_t> counts;
  for (const pair& p : pairs) {
    for (const std::string* text : {&p.source, &p.target}) {
      for (const char32_t c : code_points(*text)) ++counts[c];
    }
  }
  std::vector<std::pair<char32_t, std::int64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

/// The characters in the targets of the pairs, sorted.
inline std::u32string target_characters(std::span<const pair> pairs) {
  std::u32string alphabet;
  for (const pair& p : pairs) {
    for (const char32_t c : code_points(p.target)) {
      if (alphabet.find(c) == std::u32string::npos) alphabet.push_back(c);
    }
  }
  std::sort(alphabet.begin(), alphabet.end());
  return alphabet;
}

/// All characters that occur `min_frequency` times, and all characters of the targets, so that these can be written exactly.
inline std::unique_ptr<vocabulary> train_character_vocabulary(std::span<const pair> train,
                                                              std::int64_t min_frequency = 5) {
  const std::u32string required = target_characters(train);
  std::u32string characters;
  for (const auto& [c, frequency] : character_frequencies(train)) {
    if (frequency >= min_frequency || required.find(c) != std::u32string::npos) characters.push_back(c);
  }
  return std::make_unique<character_vocabulary>(std::move(characters));
}

}  // namespace translate

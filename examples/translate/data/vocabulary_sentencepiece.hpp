// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The header can exist without its library being linked. In this case the build defines the macro as 0.
#if !defined(TRANSLATE_HAS_SENTENCEPIECE)
#if __has_include(<sentencepiece_processor.h>) && __has_include(<sentencepiece_trainer.h>)
#define TRANSLATE_HAS_SENTENCEPIECE 1
#else
#define TRANSLATE_HAS_SENTENCEPIECE 0
#endif
#endif

#include <string_view>

namespace translate {

/// The first bytes of a vocabulary by sentencepiece.
inline constexpr std::string_view sentencepiece_tag = "sentencepiece\n";

}  // namespace translate

#if TRANSLATE_HAS_SENTENCEPIECE

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "data/corpus.hpp"
#include "data/text.hpp"
#include "data/vocabulary_characters.hpp"
#include "data/vocabulary_interface.hpp"

namespace translate {

namespace detail {

inline void check(const sentencepiece::util::Status& status, const std::string& what) {
  if (!status.ok()) throw std::runtime_error("sentencepiece: " + what + ": " + status.ToString());
}

/// Passes the source and target of every pair to the trainer.
class pair_sentences final : public sentencepiece::SentenceIterator {
 public:
  explicit pair_sentences(std::span<const pair> pairs) : pairs_(pairs) {}
  bool done() const override { return at_ == 2 * pairs_.size(); }
  void Next() override { ++at_; }
  const std::string& value() const override {
    return at_ % 2 == 0 ? pairs_[at_ / 2].source : pairs_[at_ / 2].target;
  }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  std::span<const pair> pairs_;
  std::size_t at_ = 0;
};

/// The share of the text that the `count` most frequent characters cover, within the bounds of the trainer.
inline double coverage(std::span<const pair> pairs, std::size_t count) {
  double covered = 0, total = 0;
  std::size_t rank = 0;
  for (const auto& [c, frequency] : character_frequencies(pairs)) {
    if (is_space(c)) continue;
    total += static_cast<double>(frequency);
    if (rank++ < count) covered += static_cast<double>(frequency);
  }
  return total == 0 ? 1 : std::clamp(covered / total, 0.98, 1.0);
}

}  // namespace detail

/// Pieces of a unigram model (Kudo 2018), computed by the library sentencepiece.
class sentencepiece_vocabulary final : public vocabulary {
 public:
  /// Throws std::runtime_error if `model` is not a model of sentencepiece with our special ids.
  explicit sentencepiece_vocabulary(std::string model) : model_(std::move(model)) {
    detail::check(processor_.LoadFromSerializedProto(model_), "these bytes are not one of its models");
    if (processor_.pad_id() != token::padding || processor_.bos_id() != token::begin ||
        processor_.eos_id() != token::end || processor_.unk_id() != token::unknown) {
      throw std::runtime_error(
          "sentencepiece: the model was not trained here: its special pieces have other ids");
    }
  }

  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<int> ids;
    detail::check(processor_.Encode(text, &ids), "cannot encode '" + std::string(text) + "'");
    return {ids.begin(), ids.end()};
  }

  std::string decode(std::span<const std::int32_t> ids) const override {
    std::vector<int> known;
    for (const std::int32_t id : ids) {
      if (id == token::end) break;
      if (id >= token::unknown && id < size()) known.push_back(id);
    }
    std::string text;
    detail::check(processor_.Decode(known, &text), "cannot decode");
    return text;
  }

  std::int32_t size() const override { return processor_.GetPieceSize(); }
  std::string serialize() const override { return std::string(sentencepiece_tag) + model_; }

 private:
  std::string model_;
  sentencepiece::SentencePieceProcessor processor_;
};

/// A model of at most `pieces` pieces, joint over sources and targets. The same pairs give the same model. The text is not normalized (the
/// default would be NFKC). Every character of a target is a piece, so targets are written exactly. At most half of the pieces are single
/// characters. Throws std::runtime_error if `pieces` is too small.
inline std::unique_ptr<vocabulary> train_sentencepiece_vocabulary(std::span<const pair> train,
                                                                  std::int32_t pieces) {
  std::string required;
  for (const char32_t c : target_characters(train)) {
    if (!is_space(c)) append_utf8(required, c);
  }
  const double covered = detail::coverage(train, static_cast<std::size_t>(std::max(pieces, 0)) / 2);
  const std::unordered_map<std::string, std::string> options{{"model_type", "unigram"},
                                                             {"vocab_size", std::to_string(pieces)},
                                                             {"hard_vocab_limit", "false"},
                                                             {"character_coverage", std::to_string(covered)},
                                                             {"required_chars", required},
                                                             {"normalization_rule_name", "identity"},
                                                             {"remove_extra_whitespaces", "false"},
                                                             {"pad_id", std::to_string(token::padding)},
                                                             {"bos_id", std::to_string(token::begin)},
                                                             {"eos_id", std::to_string(token::end)},
                                                             {"unk_id", std::to_string(token::unknown)},
                                                             {"unk_surface", std::string(unknown_text)},
                                                             {"num_threads", "1"},
                                                             {"minloglevel", "2"}};
  detail::pair_sentences sentences(train);
  std::string model;
  detail::check(
      sentencepiece::SentencePieceTrainer::Train(options, &sentences, &model),
      "cannot train " + std::to_string(pieces) + " pieces on " + std::to_string(train.size()) + " pairs");
  return std::make_unique<sentencepiece_vocabulary>(std::move(model));
}

}  // namespace translate

#endif

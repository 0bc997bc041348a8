// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "data/corpus.hpp"
#include "data/text.hpp"
#include "data/vocabulary_characters.hpp"
#include "data/vocabulary_interface.hpp"
#include "data/vocabulary_sentencepiece.hpp"

namespace translate {

/// Trains a vocabulary on the pairs: `pieces` pieces if this build has sentencepiece, otherwise single characters. Pass only the training
/// pairs.
inline std::unique_ptr<vocabulary> train_vocabulary(std::span<const pair> train, std::int32_t pieces) {
#if TRANSLATE_HAS_SENTENCEPIECE
  return train_sentencepiece_vocabulary(train, pieces);
#else
  static_cast<void>(pieces);
  return train_character_vocabulary(train);
#endif
}

/// The vocabulary that vocabulary::serialize() wrote. Throws std::runtime_error if the bytes are no vocabulary, or need sentencepiece and
/// this build does not have it.
inline std::unique_ptr<vocabulary> load_vocabulary(std::string_view bytes) {
  if (bytes.starts_with(character_vocabulary::tag)) {
    return std::make_unique<character_vocabulary>(
        code_points(bytes.substr(character_vocabulary::tag.size())));
  }
  if (bytes.starts_with(sentencepiece_tag)) {
#if TRANSLATE_HAS_SENTENCEPIECE
    return std::make_unique<sentencepiece_vocabulary>(std::string(bytes.substr(sentencepiece_tag.size())));
#else
    throw std::runtime_error(
        "the vocabulary was trained with sentencepiece, which this program was built without. "
        "Install libsentencepiece-dev and build again");
#endif
  }
  throw std::runtime_error(
      "these bytes hold no vocabulary: train again, or name the file of a trained model");
}

}  // namespace translate

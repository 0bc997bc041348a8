// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "data/batches.hpp"
#include "data/vocabulary.hpp"
#include "model.hpp"
#include "settings.hpp"

#include <gshard/gshard.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace translate {

/// Translates batches of texts with trained parameters, by beam search (a beam of one is greedy decoding). The beam's hypotheses are
/// rows of the batch like any others; every process sees all log-probabilities and takes the same decisions.
class translator {
 public:
  /// shape: of a batch; `beam` rows of it go to each text.
  translator(const gs::cluster<mesh>& on, const settings& s, const bucket& shape, std::int64_t beam, const vocabulary& words,
             const gs::parameter_store& store)
      : shape_(shape), beam_(beam), words_(words), encode_(on, s.dims(shape, words.size()), store), next_(on, s.dims(shape, words.size()), store) {}

  std::vector<std::string> operator()(std::span<const std::string> texts) {
    std::vector<std::string> results;
    const auto at_once = std::size_t(shape_.sequences / beam_);
    for (std::size_t first = 0; first < texts.size(); first += at_once)
      translate_batch(texts.subspan(first, std::min(at_once, texts.size() - first)), results);
    return results;
  }

 private:
  struct hypothesis {
    std::vector<std::int32_t> ids{token::begin};
    double log_probability = 0;
    bool ended = false;

    /// Longer outputs have less probability; dividing by the length makes them comparable.
    double score() const { return log_probability / double(ids.size()); }
  };
  struct choice {
    std::size_t from;
    std::int32_t id;
    double log_probability;
  };

  bucket shape_;
  std::int64_t beam_;
  const vocabulary& words_;
  gs::executable<encoding_program> encode_;
  gs::executable<next_token_program> next_;

  void translate_batch(std::span<const std::string> texts, std::vector<std::string>& results) {
    const auto rows = std::size_t(shape_.sequences), beam = std::size_t(beam_), length = std::size_t(shape_.target_length);
    std::vector<std::int32_t> source(rows * std::size_t(shape_.source_length), token::padding);
    for (std::size_t row = 0; row < texts.size() * beam; ++row) {
      std::vector<std::int32_t> ids = words_.encode(texts[row / beam]);
      ids.resize(std::min(ids.size(), std::size_t(shape_.source_length)));
      std::copy(ids.begin(), ids.end(), source.begin() + std::ptrdiff_t(row * std::size_t(shape_.source_length)));
    }
    const auto memory = encode_(source);

    std::vector<std::vector<hypothesis>> beams(texts.size(), std::vector<hypothesis>(1));
    for (std::size_t t = 0; t + 1 < length; ++t) {
      std::vector<std::int32_t> prefix(rows * length, token::padding);
      std::vector<float> last(rows * length, 0);
      bool open = false;
      for (std::size_t text = 0; text < texts.size(); ++text)
        for (std::size_t k = 0; k < beams[text].size(); ++k) {
          const hypothesis& h = beams[text][k];
          const std::size_t begin = (text * beam + k) * length;
          std::copy(h.ids.begin(), h.ids.end(), prefix.begin() + std::ptrdiff_t(begin));
          last[begin + h.ids.size() - 1] = 1;
          open = open || !h.ended;
        }
      if (!open) break;
      const std::vector<float> log_probability = gs::to_global(next_(source, memory, prefix, last));
      for (std::size_t text = 0; text < texts.size(); ++text) advance(beams[text], log_probability, text * beam);
    }
    for (const std::vector<hypothesis>& b : beams) {
      const auto best = std::max_element(b.begin(), b.end(), [](const auto& x, const auto& y) { return x.score() < y.score(); });
      results.push_back(words_.decode(best->ids));
    }
  }

  /// The best `beam_` continuations of a text's hypotheses; row `first` of the log-probabilities belongs to the first of them.
  void advance(std::vector<hypothesis>& beam, std::span<const float> log_probability, std::size_t first) const {
    const auto size = std::size_t(words_.size()), wanted = std::size_t(beam_);
    std::vector<choice> choices;
    for (std::size_t k = 0; k < beam.size(); ++k) {
      if (beam[k].ended) {
        choices.push_back({k, token::end, beam[k].log_probability});
        continue;
      }
      const auto row = log_probability.subspan((first + k) * size, size);
      std::vector<std::int32_t> ids;
      for (std::int32_t id = token::end; id < std::int32_t(size); ++id)
        if (id != token::unknown) ids.push_back(id);
      const auto more_likely = [&](std::int32_t x, std::int32_t y) { return row[std::size_t(x)] > row[std::size_t(y)]; };
      const std::size_t kept = std::min(wanted, ids.size());
      std::partial_sort(ids.begin(), ids.begin() + std::ptrdiff_t(kept), ids.end(), more_likely);
      for (std::size_t i = 0; i < kept; ++i) choices.push_back({k, ids[i], beam[k].log_probability + double(row[std::size_t(ids[i])])});
    }
    std::stable_sort(choices.begin(), choices.end(), [](const choice& x, const choice& y) { return x.log_probability > y.log_probability; });
    choices.resize(std::min(choices.size(), wanted));
    std::vector<hypothesis> next;
    for (const choice& c : choices) {
      hypothesis h = beam[c.from];
      if (!h.ended) {
        h.log_probability = c.log_probability;
        h.ended = c.id == token::end;
        if (!h.ended) h.ids.push_back(c.id);
      }
      next.push_back(std::move(h));
    }
    beam = std::move(next);
  }
};

}  // namespace translate

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "data/vocabulary_interface.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace translate {

/// A translation that is being written.
struct hypothesis {
  std::vector<std::int32_t> ids{token::begin};
  double log_probability = 0;
  bool ended = false;
  std::size_t parent = 0;  // which hypothesis of the beam before it continues

  /// Longer outputs have less probability; dividing by the length makes them comparable.
  double score() const { return log_probability / double(ids.size()); }
};

/// The `width` best continuations by one token of the hypotheses of a text; a width of 1 is greedy decoding. Row k of
/// `log_probability` (rows of `vocabulary` numbers) belongs to hypothesis k. Hypotheses that have ended compete as they are.
inline std::vector<hypothesis> advance(const std::vector<hypothesis>& beam, std::size_t width, std::span<const float> log_probability,
                                       std::size_t vocabulary) {
  struct choice {
    std::size_t from;
    std::int32_t id;
    double log_probability;
  };
  std::vector<choice> choices;
  for (std::size_t k = 0; k < beam.size(); ++k) {
    if (beam[k].ended) {
      choices.push_back({k, token::end, beam[k].log_probability});
      continue;
    }
    const auto row = log_probability.subspan(k * vocabulary, vocabulary);
    std::vector<std::int32_t> ids;
    for (std::int32_t id = token::end; id < std::int32_t(vocabulary); ++id)
      if (id != token::unknown) ids.push_back(id);
    const std::size_t kept = std::min(width, ids.size());
    std::partial_sort(ids.begin(), ids.begin() + std::ptrdiff_t(kept), ids.end(),
                      [&](std::int32_t x, std::int32_t y) { return row[std::size_t(x)] > row[std::size_t(y)]; });
    for (std::size_t i = 0; i < kept; ++i) choices.push_back({k, ids[i], beam[k].log_probability + double(row[std::size_t(ids[i])])});
  }
  std::stable_sort(choices.begin(), choices.end(), [](const choice& x, const choice& y) { return x.log_probability > y.log_probability; });
  choices.resize(std::min(choices.size(), width));
  std::vector<hypothesis> next;
  for (const choice& c : choices) {
    hypothesis h = beam[c.from];
    h.log_probability = c.log_probability;
    if (!h.ended && c.id != token::end) h.ids.push_back(c.id);
    h.ended = c.id == token::end;
    h.parent = c.from;
    next.push_back(std::move(h));
  }
  return next;
}

}  // namespace translate

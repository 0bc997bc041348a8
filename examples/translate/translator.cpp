// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "translator.hpp"

#include "beam.hpp"
#include "model.hpp"

#include <gshard/gshard.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace translate {

struct translator::programs {
  gs::executable<encoding_program> encode;
  gs::executable<next_token_program> next;
};

translator::translator(const gs::any_cluster& on, const settings& s, const bucket& shape, std::int64_t beam, const vocabulary& words,
                       const gs::parameter_store& store)
    : shape_(shape),
      groups_(s.groups),
      beam_(beam),
      words_(words),
      store_(store),
      programs_(new programs{{on, s.dims(shape, words.size()), store}, {on, s.dims(shape, words.size()), store}}) {}
translator::~translator() {
  programs_.reset();
  std::vector<std::string> caches;
  for (const auto& [name, entry] : store_.entries())
    if (entry.is_cache) caches.push_back(name);
  for (const std::string& name : caches) store_.forget(name);
}

std::vector<std::string> translator::operator()(std::span<const std::string> texts) {
  std::vector<std::string> results;
  const auto at_once = std::size_t(shape_.sequences / beam_);
  for (std::size_t first = 0; first < texts.size(); first += at_once)
    translate_batch(texts.subspan(first, std::min(at_once, texts.size() - first)), results);
  return results;
}

void translator::translate_batch(std::span<const std::string> texts, std::vector<std::string>& results) {
  const auto rows = std::size_t(shape_.sequences), beam = std::size_t(beam_), words = std::size_t(words_.size());
  const auto source_length = std::size_t(shape_.source_length), length = std::size_t(shape_.target_length);
  const auto in_group = rows / std::size_t(groups_);
  std::vector<std::int32_t> source(rows * source_length, token::padding);
  for (std::size_t row = 0; row < texts.size() * beam; ++row) {
    std::vector<std::int32_t> ids = words_.encode(texts[row / beam]);
    ids.resize(std::min(ids.size(), source_length));
    std::copy(ids.begin(), ids.end(), source.begin() + std::ptrdiff_t(row * source_length));
  }
  programs_->encode(source);

  std::vector<std::vector<hypothesis>> beams(texts.size(), std::vector<hypothesis>(1));
  for (std::size_t t = 0; t + 1 < length; ++t) {
    std::vector<std::int32_t> last(rows, token::padding), order(rows);
    for (std::size_t row = 0; row < rows; ++row) order[row] = std::int32_t(row % in_group);
    bool open = false;
    for (std::size_t text = 0; text < texts.size(); ++text)
      for (std::size_t k = 0; k < beams[text].size(); ++k) {
        const hypothesis& h = beams[text][k];
        const std::size_t first = text * beam;
        order[first + k] = std::int32_t((first + h.parent) % in_group);
        if (h.ended) continue;
        last[first + k] = h.ids.back();
        open = true;
      }
    if (!open) break;
    const std::vector<float> log_probability = gs::to_global(programs_->next(source, last, std::array{std::int32_t(t)}, order));
    for (std::size_t text = 0; text < texts.size(); ++text)
      beams[text] = advance(beams[text], beam, std::span(log_probability).subspan(text * beam * words, beam * words), words);
  }
  for (const std::vector<hypothesis>& b : beams) {
    const auto best = std::max_element(b.begin(), b.end(), [](const auto& x, const auto& y) { return x.score() < y.score(); });
    results.push_back(words_.decode(best->ids));
  }
}

}  // namespace translate

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "translator.hpp"

#include "model.hpp"

#include <gshard/gshard.hpp>
#include <gshard/models.hpp>

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
                       gs::parameter_store store)
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
  const auto rows = std::size_t(shape_.sequences), beam = std::size_t(beam_), groups = std::size_t(groups_);
  const auto source_length = std::size_t(shape_.source_length);
  std::vector<std::int32_t> source(rows * source_length, token::padding);
  for (std::size_t row = 0; row < texts.size() * beam; ++row) {
    std::vector<std::int32_t> ids = words_.encode(texts[row / beam]);
    ids.resize(std::min(ids.size(), source_length));
    std::copy(ids.begin(), ids.end(), source.begin() + std::ptrdiff_t(row * source_length));
  }
  programs_->encode(source);

  const gs::beam_options options{
      .width = beam, .end = token::end, .excluded = {token::padding, token::begin, token::unknown}, .length_exponent = 1};
  gs::beam_search search(std::vector<std::vector<std::int32_t>>(texts.size(), {token::begin}), {groups, rows / groups}, options);
  while (!search.done() && search.position() + 1 < std::int32_t(shape_.target_length))
    search.advance(gs::to_global(programs_->next(source, search.ids(), std::array{search.position()}, search.order())));
  for (std::size_t text = 0; text < texts.size(); ++text) results.push_back(words_.decode(search.best(text).ids));
}

}  // namespace translate

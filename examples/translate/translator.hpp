// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "data/buckets.hpp"
#include "data/vocabulary_interface.hpp"
#include "settings.hpp"

#include <gshard/exec/program/parameters.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace translate {

/// Translates batches of texts by beam search, with the parameters of a store. Hypotheses of a text are rows of the batch. Every process
/// sees all log-probabilities and makes the same decisions. Each step decodes one position. The store caches the keys and values of earlier
/// positions while the translator exists. A store can have one translator at a time.
class translator {
 public:
  /// shape: of a batch; each text uses `beam` rows of it. `words` must outlive the translator.
  translator(const gs::any_cluster& on, const settings& s, const bucket& shape, std::int64_t beam, const vocabulary& words,
             gs::parameter_store store);
  ~translator();
  translator(const translator&) = delete;
  translator& operator=(const translator&) = delete;

  /// One translation per text. If a text has more than `source_length()` pieces, only the first ones are read.
  std::vector<std::string> operator()(std::span<const std::string> texts);
  std::int64_t source_length() const { return shape_.source_length; }

 private:
  struct programs;
  bucket shape_;
  std::int64_t groups_, beam_;
  const vocabulary& words_;
  gs::parameter_store store_;
  std::unique_ptr<programs> programs_;

  void translate_batch(std::span<const std::string> texts, std::vector<std::string>& results);
};

}  // namespace translate

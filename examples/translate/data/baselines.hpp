// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "data/corpus.hpp"
#include "data/random.hpp"
#include "data/text.hpp"

namespace translate {

/// The trivial translation: a copy of the source.
inline std::string copy_source(std::string_view source) {
  return std::string(source);
}

/// Answers with the target of the most similar training source: the cosine of TF-IDF vectors over character n-grams of order 1 to 4. The
/// IDF is ln((1 + documents) / (1 + documents with the n-gram)) + 1. If sources are equal, in any languages, the most frequent target is
/// kept. If sources are equally similar, the first is used.
class nearest_neighbor {
 public:
  /// Throws std::runtime_error if there are no training pairs.
  explicit nearest_neighbor(std::span<const pair> train) {
    if (train.empty()) throw std::runtime_error("nearest neighbor: there are no training pairs");
    std::map<std::string_view, std::map<std::string_view, int>> known;
    for (const pair& p : train) ++known[p.source][p.target];
    for (const auto& [source, targets] : known) {
      const auto fewer = [](const auto& a, const auto& b) { return a.second < b.second; };
      add_document(source, std::max_element(targets.begin(), targets.end(), fewer)->first);
    }
    weigh();
  }

  const std::string& translate(std::string_view source) const {
    std::vector<float> similarity(targets_.size(), 0.0F);
    for (const auto& [gram, count] : ngram_counts(source)) {
      const auto found = postings_.find(gram);
      if (found == postings_.end()) continue;
      const float weight = count * inverse_frequency(found->second);
      for (const posting& p : found->second) similarity[p.document] += weight * p.weight;
    }
    const auto best = std::max_element(similarity.begin(), similarity.end()) - similarity.begin();
    return targets_[static_cast<std::size_t>(best)];
  }

 private:
  struct posting {
    std::uint32_t document;
    float weight;
  };

  // An n-gram is identified by its hash: among a million different ones, two collide with probability 3e-8.
  static std::map<std::uint64_t, float> ngram_counts(std::string_view text) {
    const std::u32string points = code_points(text);
    std::map<std::uint64_t, float> counts;
    for (std::size_t order = 1; order <= 4; ++order) {
      for (std::size_t i = 0; i + order <= points.size(); ++i) {
        ++counts[stable_hash(to_utf8(std::u32string_view(points).substr(i, order)))];
      }
    }
    return counts;
  }

  float inverse_frequency(const std::vector<posting>& documents) const {
    return std::log(static_cast<float>(1 + targets_.size()) / static_cast<float>(1 + documents.size())) + 1;
  }

  void add_document(std::string_view source, std::string_view target) {
    const auto document = static_cast<std::uint32_t>(targets_.size());
    for (const auto& [gram, count] : ngram_counts(source)) postings_[gram].push_back({document, count});
    targets_.emplace_back(target);
  }

  // Turns counts into weights of unit vectors. A query needs no norm: it is the same for all documents.
  void weigh() {
    std::vector<float> squares(targets_.size(), 0.0F);
    for (auto& [gram, documents] : postings_) {
      const float idf = inverse_frequency(documents);
      for (posting& p : documents) {
        p.weight *= idf;
        squares[p.document] += p.weight * p.weight;
      }
    }
    for (auto& [gram, documents] : postings_) {
      for (posting& p : documents) p.weight /= std::sqrt(squares[p.document]);
    }
  }

  std::unordered_map<std::uint64_t, std::vector<posting>> postings_;
  std::vector<std::string> targets_;
};

}  // namespace translate

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "data/corpus.hpp"
#include "data/text.hpp"

namespace translate {

/// chrF2 of a corpus as defined by sacrebleu 2 (Popovic 2015): character n-grams of order 1 to 6 without white space, counted over all
/// sentences. Precision and recall are averaged over the orders that occur on both sides. The result is their F score with beta = 2, from 0
/// to 100.
class chrf {
 public:
  void add(std::string_view hypothesis, std::string_view reference) {
    const std::u32string h = without_space(hypothesis);
    const std::u32string r = without_space(reference);
    for (std::size_t order = 1; order <= orders && order <= r.size(); ++order) {
      const auto h_grams = sorted_ngrams(h, order);
      const auto r_grams = sorted_ngrams(r, order);
      std::vector<std::u32string_view> common;
      std::set_intersection(h_grams.begin(), h_grams.end(), r_grams.begin(), r_grams.end(),
                            std::back_inserter(common));
      counts& c = counts_[order - 1];
      c.hypothesis += static_cast<std::int64_t>(h_grams.size());
      c.reference += static_cast<std::int64_t>(r_grams.size());
      c.common += static_cast<std::int64_t>(common.size());
    }
  }

  double score() const {
    double precision = 0, recall = 0;
    int effective_orders = 0;
    for (const counts& c : counts_) {
      if (c.hypothesis == 0 || c.reference == 0) continue;
      precision += static_cast<double>(c.common) / static_cast<double>(c.hypothesis);
      recall += static_cast<double>(c.common) / static_cast<double>(c.reference);
      ++effective_orders;
    }
    if (precision + recall == 0) return 0;
    precision /= effective_orders;
    recall /= effective_orders;
    constexpr double beta2 = 4;
    return 100 * (1 + beta2) * precision * recall / (beta2 * precision + recall);
  }

 private:
  struct counts {
    std::int64_t hypothesis = 0, reference = 0, common = 0;
  };

  static std::u32string without_space(std::string_view text) {
    std::u32string points = code_points(text);
    std::erase_if(points, is_space);
    return points;
  }

  static std::vector<std::u32string_view> sorted_ngrams(std::u32string_view text, std::size_t order) {
    std::vector<std::u32string_view> grams;
    for (std::size_t i = 0; i + order <= text.size(); ++i) grams.push_back(text.substr(i, order));
    std::sort(grams.begin(), grams.end());
    return grams;
  }

  static constexpr std::size_t orders = 6;
  std::array<counts, orders> counts_{};
};

/// How well hypotheses agree with their references: the share of equal ones (0 to 1), chrF of all of them together, and the mean of their
/// single chrF. In the mean, short references have the same weight as long ones.
struct score {
  std::int64_t count = 0;
  double exact = 0;
  double chrf = 0;
  double sentence_chrf = 0;
};

/// The score of each group of pairs. `key(pair)` names its group, as in `evaluate_by(h, pairs, &pair::script)`. Throws std::runtime_error
/// if the numbers of hypotheses and pairs differ.
template <class Key>
std::map<std::string, score> evaluate_by(std::span<const std::string> hypotheses,
                                         std::span<const pair> references, Key key) {
  if (hypotheses.size() != references.size()) {
    throw std::runtime_error("evaluate: " + std::to_string(hypotheses.size()) + " hypotheses for " +
                             std::to_string(references.size()) + " references");
  }
  struct group {
    std::int64_t count = 0, equal = 0;
    double sentences = 0;
    chrf together;
  };
  std::map<std::string, group> groups;
  for (std::size_t i = 0; i < references.size(); ++i) {
    group& g = groups[std::invoke(key, references[i])];
    ++g.count;
    g.equal += hypotheses[i] == references[i].target ? 1 : 0;
    g.together.add(hypotheses[i], references[i].target);
    chrf alone;
    alone.add(hypotheses[i], references[i].target);
    g.sentences += alone.score();
  }
  std::map<std::string, score> scores;
  for (const auto& [name, g] : groups) {
    const auto count = static_cast<double>(g.count);
    scores[name] = {g.count, static_cast<double>(g.equal) / count, g.together.score(), g.sentences / count};
  }
  return scores;
}

/// The score of all pairs together.
inline score evaluate(std::span<const std::string> hypotheses, std::span<const pair> references) {
  return evaluate_by(hypotheses, references, [](const pair&) { return std::string(); })[""];
}

/// The mean over the groups. All languages have the same weight, for any number of pairs.
inline score macro_average(const std::map<std::string, score>& groups) {
  score mean;
  for (const auto& [name, s] : groups) {
    mean.count += s.count;
    mean.exact += s.exact / static_cast<double>(groups.size());
    mean.chrf += s.chrf / static_cast<double>(groups.size());
    mean.sentence_chrf += s.sentence_chrf / static_cast<double>(groups.size());
  }
  return mean;
}

}  // namespace translate

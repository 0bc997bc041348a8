// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "data/corpus.hpp"
#include "data/random.hpp"

namespace translate {

/// Which part of the corpus is excluded from training.
struct split_options {
  std::vector<std::string> languages = {"be", "crh", "da", "gl", "kn"};
  double terms = 0.04;
  double pairs = 0.05;
};

/// A part of the corpus that is not trained on. `clean` contains the pairs of `all` whose source is in no training pair of any language and
/// differs from the English target. The others can be answered by looking up or copying.
struct held_out {
  std::vector<pair> all;
  std::vector<pair> clean;
};

/// `languages`: whole languages. `terms`: English terms, in all other languages. `pairs`: single (locale,
/// English term) pairs whose term is trained on in other languages.
struct splits {
  std::vector<pair> train;
  held_out languages;
  held_out terms;
  held_out pairs;
};

namespace detail {

/// True if `key` is in the `fraction` of all keys that `part` takes. Depends only on the key.
inline bool falls_into(std::string_view part, std::string_view key, double fraction) {
  const auto bucket = stable_hash(key, stable_hash(part)) % 1'000'000;
  return static_cast<double>(bucket) < fraction * 1e6;
}

inline void select_clean(held_out& part, const std::unordered_set<std::string_view>& known_sources) {
  for (const pair& p : part.all) {
    if (p.source != p.target && !known_sources.contains(p.source)) part.clean.push_back(p);
  }
}

}  // namespace detail

/// Divides the corpus. The part of a pair depends only on its locale and target, so it does not change if other pairs are added or removed.
inline splits split(std::span<const pair> corpus, const split_options& options = {}) {
  splits s;
  for (const pair& p : corpus) {
    const auto& languages = options.languages;
    if (std::find(languages.begin(), languages.end(), p.locale) != languages.end()) {
      s.languages.all.push_back(p);
    } else if (detail::falls_into("terms", p.target, options.terms)) {
      s.terms.all.push_back(p);
    } else if (detail::falls_into("pairs", p.locale + '\n' + p.target, options.pairs)) {
      s.pairs.all.push_back(p);
    } else {
      s.train.push_back(p);
    }
  }
  std::unordered_set<std::string_view> known_sources;
  for (const pair& p : s.train) known_sources.insert(p.source);
  for (held_out* part : {&s.languages, &s.terms, &s.pairs}) detail::select_clean(*part, known_sources);
  return s;
}

}  // namespace translate

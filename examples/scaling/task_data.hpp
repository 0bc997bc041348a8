// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Shared by all runs of a task: word pieces, training pairs, and validation pairs of languages with many and with few training pairs.

#include "catalogues.hpp"
#include "configuration.hpp"

#include "data/batches.hpp"
#include "data/buckets.hpp"
#include "data/random.hpp"
#include "data/splits.hpp"
#include "data/vocabulary.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace scaling {

/// The common sizes of all models of a task.
struct sizes {
  std::int64_t model = 128, heads = 4, head = 32, hidden = 256, groups = 4, positions = 64;
  std::int32_t pieces = 4000;
  std::int64_t batch_tokens = 3072;
  double peak_rate = 4e-3, warmup = 150;
  std::size_t most_pairs = 400'000;  // the approximate number of training pairs, selected by the hash of each
  std::size_t validation_pairs = 512;

  static sizes quick() {
    sizes s;
    s.model = 32, s.heads = 2, s.head = 16, s.hidden = 64, s.pieces = 1000, s.batch_tokens = 1024;
    s.most_pairs = 10'000, s.validation_pairs = 64;
    return s;
  }
  /// Models that train in about a minute on one core. Their batches are too small for several groups.
  static sizes small() {
    sizes s;
    s.model = 64, s.head = 16, s.hidden = 128, s.groups = 1, s.pieces = 2000, s.batch_tokens = 6144;
    s.most_pairs = 100'000;
    return s;
  }
  gs::dims dims(const translate::bucket& b, std::int64_t vocabulary, std::int64_t experts) const {
    return {{'G', groups}, {'B', b.sequences / groups}, {'S', b.source_length}, {'T', b.target_length}, {'M', model},
            {'H', heads},  {'D', head},                 {'F', hidden},          {'E', experts},         {'V', vocabulary},
            {'L', positions}};
  }
};

/// Pairs whose term is in the training data of other languages, and whose source is in no training pair.
struct validation_set {
  std::string name;
  std::vector<translate::batch> batches;
};

struct task_data {
  std::int64_t vocabulary = 0;
  std::size_t training_pairs = 0, languages = 0, terms = 0;
  std::vector<translate::encoded_pair> train;
  std::vector<translate::bucket> buckets;
  translate::bucket validation_shape;
  std::vector<validation_set> validation;  // "all", "high", "low"
};

/// Languages by their number of training pairs, from the most to the fewest.
inline std::vector<std::string> languages_by_size(std::span<const pair> train) {
  std::map<std::string, std::size_t> count;
  for (const pair& p : train) ++count[p.locale];
  std::vector<std::string> order;
  for (const auto& [language, n] : count) order.push_back(language);
  std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) { return count[a] > count[b]; });
  return order;
}

/// The pairs whose language is in the list.
inline std::vector<pair> of_languages(std::span<const pair> pairs, std::span<const std::string> languages) {
  const std::set<std::string> wanted(languages.begin(), languages.end());
  std::vector<pair> some;
  for (const pair& p : pairs)
    if (wanted.contains(p.locale)) some.push_back(p);
  return some;
}

/// Keeps about `most` of the pairs, selected by the hash of each.
inline std::vector<pair> keep_some(std::vector<pair> pairs, std::size_t most) {
  if (pairs.size() <= most) return pairs;
  const double share = double(most) / double(pairs.size());
  std::erase_if(pairs, [&](const pair& p) { return !translate::detail::falls_into("kept", p.locale + '\n' + p.source, share); });
  return pairs;
}

/// Reads the catalogues of a task. The order of all lists depends on the files alone.
inline task_data prepare(task which, const sizes& s, const std::filesystem::path& iso_codes, const std::filesystem::path& catalogues) {
  translate::corpus_options where;
  where.directory = iso_codes;
  const std::vector<pair> corpus = which == task::iso_codes ? translate::read_corpus(where) : read_catalogues(catalogues);
  const translate::splits parts = translate::split(corpus);
  const std::vector<pair> train = keep_some(parts.train, s.most_pairs);
  const std::unique_ptr<translate::vocabulary> words = translate::train_vocabulary(keep_some(train, 100'000), s.pieces);

  task_data d;
  d.vocabulary = words->size();
  d.training_pairs = train.size();
  std::set<std::string_view> terms;
  for (const pair& p : train) terms.insert(p.target);
  d.terms = terms.size();
  d.train = translate::encode(*words, train);
  translate::bucket_options shapes;
  shapes.quantiles = {0.6, 0.95};
  shapes.sequences_multiple = s.groups;
  shapes.tokens = s.batch_tokens;
  d.buckets = translate::choose_buckets(d.train, shapes);
  d.validation_shape = d.buckets.back();

  const std::vector<std::string> languages = languages_by_size(train);
  d.languages = languages.size();
  const std::size_t third = languages.size() / 3;
  const auto add = [&](const std::string& name, std::vector<pair> pairs) {
    translate::stable_shuffle(std::span(pairs), 17);
    std::vector<translate::encoded_pair> fitting;
    for (const translate::encoded_pair& p : translate::encode(*words, pairs)) {
      if (fitting.size() == s.validation_pairs) break;
      if (d.validation_shape.fits(p)) fitting.push_back(p);
    }
    const auto rows = std::size_t(d.validation_shape.sequences);
    fitting.resize(fitting.size() / rows * rows);  // whole batches, so that no pair counts twice
    d.validation.push_back({name, translate::evaluation_batches(fitting, d.validation_shape)});
  };
  const std::vector<pair>& held_out = parts.pairs.clean;
  add("all", held_out);
  add("high", of_languages(held_out, std::span(languages).first(third)));
  add("low", of_languages(held_out, std::span(languages).last(third)));
  return d;
}

}  // namespace scaling

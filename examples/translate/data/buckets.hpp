// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "data/corpus.hpp"
#include "data/vocabulary_interface.hpp"

namespace translate {

/// A pair as pieces, without begin and end.
struct encoded_pair {
  std::vector<std::int32_t> source;
  std::vector<std::int32_t> target;
};

inline std::vector<encoded_pair> encode(const vocabulary& v, std::span<const pair> pairs) {
  std::vector<encoded_pair> encoded;
  encoded.reserve(pairs.size());
  for (const pair& p : pairs) encoded.push_back({v.encode(p.source), v.encode(p.target)});
  return encoded;
}

/// The shape of a batch: `sequences` sources of `source_length` and as many targets of `target_length` ids.
struct bucket {
  std::int64_t source_length = 0;
  std::int64_t target_length = 0;
  std::int64_t sequences = 0;

  bool operator==(const bucket&) const = default;

  /// A target takes one id more than it has pieces, for begin or end.
  bool fits(const encoded_pair& p) const {
    return std::ssize(p.source) <= source_length && std::ssize(p.target) < target_length;
  }
};

/// Each quantile of the lengths, rounded up to a multiple of `length_multiple`, gives a bucket. Equal ones give one. A batch has about
/// `tokens` source and target ids. Its number of sequences is a multiple of `sequences_multiple`, the number of groups or devices.
struct bucket_options {
  std::vector<double> quantiles = {0.5, 0.8, 0.95, 0.995};
  std::int64_t length_multiple = 4;
  std::int64_t tokens = 4096;
  std::int64_t sequences_multiple = 1;
};

namespace detail {

inline std::int64_t length_at(std::span<const std::int64_t> sorted_lengths, double quantile,
                              std::int64_t multiple) {
  const double position = quantile * static_cast<double>(sorted_lengths.size() - 1);
  const std::int64_t length = sorted_lengths[static_cast<std::size_t>(position)];
  return (length + multiple - 1) / multiple * multiple;
}

}  // namespace detail

/// A few fixed shapes for these training pairs, in ascending order. Throws std::runtime_error if there are no pairs, or if an option is out
/// of range.
inline std::vector<bucket> choose_buckets(std::span<const encoded_pair> pairs,
                                          const bucket_options& options = {}) {
  if (pairs.empty()) throw std::runtime_error("choose_buckets: there are no pairs");
  if (options.length_multiple < 1 || options.sequences_multiple < 1 || options.quantiles.empty()) {
    throw std::runtime_error("choose_buckets: multiples must be at least 1, and quantiles not empty");
  }
  std::vector<std::int64_t> sources, targets;
  for (const encoded_pair& p : pairs) {
    sources.push_back(std::max<std::int64_t>(1, std::ssize(p.source)));
    targets.push_back(std::ssize(p.target) + 1);
  }
  std::sort(sources.begin(), sources.end());
  std::sort(targets.begin(), targets.end());
  std::vector<double> quantiles = options.quantiles;
  std::sort(quantiles.begin(), quantiles.end());
  if (quantiles.front() < 0 || quantiles.back() > 1) {
    throw std::runtime_error("choose_buckets: quantiles must lie in [0, 1]");
  }
  std::vector<bucket> buckets;
  for (const double q : quantiles) {
    const std::int64_t s = detail::length_at(sources, q, options.length_multiple);
    const std::int64_t t = detail::length_at(targets, q, options.length_multiple);
    const std::int64_t multiples = options.tokens / (s + t) / options.sequences_multiple;
    const bucket b{s, t, std::max<std::int64_t>(1, multiples) * options.sequences_multiple};
    if (buckets.empty() || buckets.back() != b) buckets.push_back(b);
  }
  return buckets;
}

}  // namespace translate

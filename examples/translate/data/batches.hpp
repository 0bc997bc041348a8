// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "data/buckets.hpp"
#include "data/random.hpp"
#include "data/vocabulary_interface.hpp"

namespace translate {

/// N pairs in the shape (N, S, T) of a bucket, row by row, filled up with padding. Row n of `target_in` is begin and the pieces. Row n of
/// `target_out` is the pieces and end.
struct batch {
  std::size_t bucket = 0;
  std::vector<std::int32_t> source;      // [N, S]
  std::vector<std::int32_t> target_in;   // [N, T]
  std::vector<std::int32_t> target_out;  // [N, T]

  bool operator==(const batch&) const = default;
};

namespace detail {

inline void append_row(std::vector<std::int32_t>& rows, std::vector<std::int32_t> row, std::int64_t length) {
  row.resize(static_cast<std::size_t>(length), token::padding);
  rows.insert(rows.end(), row.begin(), row.end());
}

/// Appends one pair, truncated to the bucket's shape.
inline void append_pair(batch& rows, const encoded_pair& p, const bucket& shape) {
  append_row(rows.source, p.source, shape.source_length);
  std::vector<std::int32_t> in{token::begin};
  in.insert(in.end(), p.target.begin(), p.target.end());
  append_row(rows.target_in, std::move(in), shape.target_length);
  std::vector<std::int32_t> out = p.target;
  out.push_back(token::end);
  append_row(rows.target_out, std::move(out), shape.target_length);
}

}  // namespace detail

/// An endless sequence of training batches that is a function of only the pairs, the buckets and the seed. Batch `step` does not need
/// earlier batches, so a run resumes by its step number. A pair is in the first bucket that it fits. A round has batches_per_round()
/// batches, and contains every pair at least once, in its own order. The last batch of a bucket is filled up with pairs from its first.
class batch_stream {
 public:
  /// Throws std::runtime_error if no pair fits any bucket.
  batch_stream(std::vector<encoded_pair> pairs, std::vector<bucket> buckets, std::uint64_t seed)
      : pairs_(std::move(pairs)), buckets_(std::move(buckets)), members_(buckets_.size()), seed_(seed) {
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      const auto fits = [&](const bucket& b) { return b.fits(pairs_[i]); };
      const auto found = std::find_if(buckets_.begin(), buckets_.end(), fits);
      if (found == buckets_.end()) {
        ++dropped_;
      } else {
        members_[static_cast<std::size_t>(found - buckets_.begin())].push_back(i);
      }
    }
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      if (buckets_[b].sequences < 1)
        throw std::runtime_error("batch_stream: a batch needs at least one sequence");
      const std::int64_t batches =
          (std::ssize(members_[b]) + buckets_[b].sequences - 1) / buckets_[b].sequences;
      for (std::int64_t j = 0; j < batches; ++j) round_.push_back({b, j});
    }
    if (round_.empty()) throw std::runtime_error("batch_stream: no pair fits a bucket");
  }

  /// The number of pairs that fit no bucket. They are not trained on.
  std::int64_t dropped() const { return dropped_; }

  std::int64_t batches_per_round() const { return std::ssize(round_); }

  const std::vector<bucket>& buckets() const { return buckets_; }

  /// Batch number `step` >= 0.
  batch at(std::int64_t step) const {
    const auto round = static_cast<std::uint64_t>(step / batches_per_round());
    std::vector<place> order = round_;
    stable_shuffle(std::span(order), key(round, buckets_.size()));
    const auto [b, number] = order[static_cast<std::size_t>(step % batches_per_round())];
    std::vector<std::size_t> members = members_[b];
    stable_shuffle(std::span(members), key(round, b));
    batch result{b, {}, {}, {}};
    for (std::int64_t row = 0; row < buckets_[b].sequences; ++row) {
      const auto i = static_cast<std::size_t>(number * buckets_[b].sequences + row) % members.size();
      detail::append_pair(result, pairs_[members[i]], buckets_[b]);
    }
    return result;
  }

  /// The next batch, from step 0 on.
  batch next() { return at(step_++); }

  /// Saves the position in the stream as text. A run that is restarted restores it and reads the remaining batches.
  std::string save() const { return std::to_string(step_); }
  void restore(std::string_view saved) {
    std::int64_t step = 0;
    const auto [end, problem] = std::from_chars(saved.data(), saved.data() + saved.size(), step);
    if (problem != std::errc() || end != saved.data() + saved.size() || step < 0)
      throw std::runtime_error("batch_stream: '" + std::string(saved) + "' is no place in a stream");
    step_ = step;
  }

 private:
  struct place {
    std::size_t bucket;
    std::int64_t number;
  };

  std::uint64_t key(std::uint64_t round, std::size_t stream) const {
    return mix(mix(mix(seed_) + round) + stream);
  }

  std::vector<encoded_pair> pairs_;
  std::vector<bucket> buckets_;
  std::vector<std::vector<std::size_t>> members_;
  std::vector<place> round_;
  std::uint64_t seed_ = 0;
  std::int64_t dropped_ = 0;
  std::int64_t step_ = 0;
};

/// All pairs in their order, in batches of one shape: pair i is row i % N of batch i / N. The last batch is filled up with the last pair.
/// Longer texts are truncated. All batches have one shape, because a shape chosen by the target's length would give a decoder a hint.
/// `number` becomes the field `bucket` of the batches.
inline std::vector<batch> evaluation_batches(std::span<const encoded_pair> pairs, const bucket& shape,
                                             std::size_t number = 0) {
  if (shape.sequences < 1)
    throw std::runtime_error("evaluation_batches: a batch needs at least one sequence");
  const auto rows = static_cast<std::size_t>(shape.sequences);
  std::vector<batch> batches;
  for (std::size_t first = 0; first < pairs.size(); first += rows) {
    batch& b = batches.emplace_back();
    b.bucket = number;
    for (std::size_t i = first; i < first + rows; ++i) {
      detail::append_pair(b, pairs[std::min(i, pairs.size() - 1)], shape);
    }
  }
  return batches;
}

}  // namespace translate

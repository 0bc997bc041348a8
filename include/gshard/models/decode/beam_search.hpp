// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Beam search: decodes the most probable sequences of tokens with a program that computes one position, such as nn::language_model_step.

#include <gshard/core/base/compiled.hpp>
#include <gshard/exec/process/error.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#if GSHARD_HAS_BODIES
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#endif

namespace gshard { inline namespace v0 {

/// Options of a beam search.
struct beam_options {
  std::size_t width = 4;                  ///< The number of hypotheses per sequence. 1: greedy decoding.
  std::int32_t end = -1;                  ///< The token that ends a sequence. Negative: none does.
  std::vector<std::int32_t> excluded{0};  ///< Tokens that are never chosen; by default the padding of gshard's models.
  /// Hypotheses are compared by (log probability) / (number of chosen tokens)^length_exponent. With 0, by probability, which decreases with
  /// every token. With 1, by the mean log probability of a token.
  double length_exponent = 0;
};

/// A sequence that a beam search decodes.
struct beam_hypothesis {
  std::vector<std::int32_t> ids;  ///< The beginning and the tokens chosen so far, including the end token.
  double log_probability = 0;     ///< The sum over the chosen tokens.
  double score = 0;               ///< The value by which hypotheses are compared. @see beam_options::length_exponent
  bool ended = false;
};

/// Beam search over a batch [G,B]. It chooses the tokens between the steps of a decoding program. Each sequence has `width` rows of one
/// group, one per hypothesis. Sequences take rows in order, from group 0 on; unused rows decode padding. Feed a step the tokens `ids()` at
/// position `position()`; each row continues the row that `order()` names. `advance` takes the log probabilities of the step, such as
/// `logits - gs::logsumexp<"GBV->GB">(logits)`:
///
///     gs::beam_search search(beginnings, {G, B}, {.width = 4, .end = 2});
///     while (!search.done() && search.position() < L)
///       search.advance(gs::to_global(step(search.ids(), std::array{search.position()}, search.order())));
///
/// `advance` extends every hypothesis by every token that is not excluded, and keeps the `width` best of each sequence. Hypotheses that
/// have ended compete with the others unchanged. With equal scores, the continuation of the better hypothesis is first, then the smaller
/// token. A sequence chooses nothing while its beginning is fed, so beginnings may have different lengths. The choices depend only on the
/// numbers, so processes with the same numbers choose alike. This class communicates nothing.
/// @see nn::language_model_step, nn::decode_step, logsumexp
class beam_search {
 public:
  /// `beginnings`: at least one token for each sequence. `extents`: those of G and B.
  /// Throws `gshard::error` if the width or an extent is 0, or the groups have no room for all sequences. Throws if a beginning is empty, a
  /// token is negative, the end is excluded, or the exponent is negative or not finite.
  beam_search(const std::vector<std::vector<std::int32_t>>& beginnings, std::array<std::size_t, 2> extents, beam_options options = {});

  /// The tokens of the next step, and the row of its group that each row continues: int32 [G,B].
  const std::vector<std::int32_t>& ids() const { return ids_; }
  const std::vector<std::int32_t>& order() const { return order_; }
  /// The position of these tokens, from 0 on.
  std::int32_t position() const { return std::int32_t(position_); }
  /// All hypotheses have ended.
  bool done() const;

  std::size_t sequences() const { return beams_.size(); }
  /// The hypotheses of a sequence, the best one first: 1 at the beginning, then up to `width`. `beam` and `best` throw std::out_of_range if
  /// there is no such sequence.
  std::span<const beam_hypothesis> beam(std::size_t sequence) const { return beams_.at(sequence); }
  const beam_hypothesis& best(std::size_t sequence) const { return beams_.at(sequence).front(); }

  /// Chooses the next token of each hypothesis. The log probabilities are those of the step that was fed `ids()`: [G,B,V], row-major.
  /// Tokens with -infinity are never chosen.
  /// Throws `gshard::error`, and chooses nothing, if their number is not a multiple of G B, or the end or an excluded token is V or more.
  /// Throws if a number of a hypothesis is NaN or above 0 by more than rounding, or no token can continue a sequence.
  void advance(std::span<const float> log_probabilities);
  void advance(std::span<const double> log_probabilities);

 private:
  struct continuation {
    std::size_t parent;  // in the beam before
    std::int32_t token;
    double log_probability, score;
    bool is_new;  // false: the parent has ended and is kept unchanged
  };
  using beam_type = std::vector<beam_hypothesis>;

  beam_options options_;
  std::size_t groups_, group_size_, position_ = 0;
  std::vector<std::size_t> beginnings_;    // their lengths, by sequence
  std::vector<beam_type> beams_;           // by sequence
  std::vector<std::int32_t> ids_, order_;  // by row
  static constexpr std::int32_t padding = 0;
  static constexpr double rounding = 0.01;  // by which a log probability may exceed 0

  [[noreturn]] static void refuse(const std::string& why);

  void check(const std::vector<std::vector<std::int32_t>>& beginnings) const;

  std::string rows_text() const;
  std::size_t beams_per_group() const { return group_size_ / options_.width; }
  /// The first row of a sequence, counted over all groups.
  std::size_t first_row(std::size_t sequence) const;

  /// Feeds the hypotheses. Hypothesis k of a sequence continues hypothesis parents[sequence][k] of the beam before.
  void feed(const std::vector<std::vector<std::size_t>>& parents);

  template <class T>
  void advance_by(std::span<const T> log_probabilities);

  /// By token: true if it may be chosen.
  std::vector<char> allowed_tokens(std::size_t vocabulary) const;

  /// The best continuations of a sequence, the best one first. `rows`: the log probabilities from its first row on.
  template <class T>
  std::vector<continuation> best_continuations(std::size_t sequence, std::span<const T> rows, const std::vector<char>& allowed) const;

  template <class T>
  void check(std::span<const T> row, std::size_t number) const;

  /// Up to `width` tokens, the most probable one first. Among equally probable tokens the smaller one is first.
  template <class T>
  std::vector<std::int32_t> most_probable(std::span<const T> row, const std::vector<char>& allowed) const;
};

#if GSHARD_HAS_BODIES

GSHARD_INLINE beam_search::beam_search(const std::vector<std::vector<std::int32_t>>& beginnings, std::array<std::size_t, 2> extents,
                                       beam_options options)
    : options_(std::move(options)), groups_(extents[0]), group_size_(extents[1]), ids_(groups_ * group_size_), order_(ids_.size()) {
  check(beginnings);
  for (const std::vector<std::int32_t>& beginning : beginnings) {
    beginnings_.push_back(beginning.size());
    beams_.emplace_back().emplace_back().ids = beginning;
  }
  feed(std::vector<std::vector<std::size_t>>(beams_.size(), {0}));
}

GSHARD_INLINE bool beam_search::done() const {
  return std::ranges::all_of(beams_, [](const auto& beam) { return std::ranges::all_of(beam, &beam_hypothesis::ended); });
}

GSHARD_INLINE void beam_search::advance(std::span<const float> log_probabilities) {
  advance_by(log_probabilities);
}

GSHARD_INLINE void beam_search::advance(std::span<const double> log_probabilities) {
  advance_by(log_probabilities);
}

GSHARD_INLINE void beam_search::refuse(const std::string& why) {
  throw error("beam_search: " + why);
}

GSHARD_INLINE void beam_search::check(const std::vector<std::vector<std::int32_t>>& beginnings) const {
  if (options_.width < 1) refuse("the width is 0");
  if (ids_.empty()) refuse("a batch of " + rows_text() + " has no rows");
  if (!(options_.length_exponent >= 0 && options_.length_exponent <= std::numeric_limits<double>::max()))
    refuse("the length exponent is " + std::to_string(options_.length_exponent));
  for (const std::int32_t id : options_.excluded) {
    if (id < 0) refuse("the excluded token " + std::to_string(id) + " is negative");
    if (id == options_.end) refuse("the end token " + std::to_string(id) + " is excluded");
  }
  if (beginnings.size() > groups_ * beams_per_group())
    refuse(std::to_string(beginnings.size()) + " sequences of width " + std::to_string(options_.width) + " in a batch of " + rows_text() +
           ", which has room for " + std::to_string(groups_ * beams_per_group()));
  for (std::size_t s = 0; s < beginnings.size(); ++s) {
    if (beginnings[s].empty()) refuse("the beginning of sequence " + std::to_string(s) + " has no token");
    for (const std::int32_t id : beginnings[s])
      if (id < 0) refuse("the beginning of sequence " + std::to_string(s) + " has the negative token " + std::to_string(id));
  }
}

GSHARD_INLINE std::string beam_search::rows_text() const {
  return std::to_string(groups_) + " groups of " + std::to_string(group_size_) + " rows";
}

GSHARD_INLINE std::size_t beam_search::first_row(std::size_t sequence) const {
  return sequence / beams_per_group() * group_size_ + sequence % beams_per_group() * options_.width;
}

GSHARD_INLINE void beam_search::feed(const std::vector<std::vector<std::size_t>>& parents) {
  std::ranges::fill(ids_, padding);
  for (std::size_t row = 0; row < order_.size(); ++row) order_[row] = std::int32_t(row % group_size_);
  for (std::size_t s = 0; s < beams_.size(); ++s)
    for (std::size_t k = 0; k < beams_[s].size(); ++k) {
      const beam_hypothesis& h = beams_[s][k];
      const std::size_t first = first_row(s);
      order_[first + k] = std::int32_t((first + parents[s][k]) % group_size_);
      if (!h.ended) ids_[first + k] = h.ids[position_];
    }
}

template <class T>
void beam_search::advance_by(std::span<const T> log_probabilities) {
  const std::size_t rows = ids_.size();
  if (log_probabilities.empty() || log_probabilities.size() % rows != 0)
    refuse(std::to_string(log_probabilities.size()) + " log probabilities for " + rows_text());
  const std::size_t vocabulary = log_probabilities.size() / rows;
  const std::vector<char> allowed = allowed_tokens(vocabulary);
  std::vector<beam_type> next = beams_;
  std::vector<std::vector<std::size_t>> parents(beams_.size(), {0});
  for (std::size_t s = 0; s < beams_.size(); ++s) {
    if (position_ + 1 < beginnings_[s]) continue;
    next[s].clear();
    parents[s].clear();
    for (const continuation& c : best_continuations(s, log_probabilities.subspan(first_row(s) * vocabulary), allowed)) {
      beam_hypothesis h = beams_[s][c.parent];
      if (c.is_new) {
        h.ids.push_back(c.token);
        h.log_probability = c.log_probability;
        h.score = c.score;
        h.ended = c.token == options_.end;
      }
      next[s].push_back(std::move(h));
      parents[s].push_back(c.parent);
    }
  }
  beams_ = std::move(next);
  ++position_;
  feed(parents);
}

GSHARD_INLINE std::vector<char> beam_search::allowed_tokens(std::size_t vocabulary) const {
  const auto check_token = [&](const char* what, std::int32_t id) {
    if (id >= 0 && std::size_t(id) >= vocabulary)
      refuse("the " + std::string(what) + " token " + std::to_string(id) + " is not in a vocabulary of " + std::to_string(vocabulary));
  };
  check_token("end", options_.end);
  std::vector<char> allowed(vocabulary, true);
  for (const std::int32_t id : options_.excluded) {
    check_token("excluded", id);
    allowed[std::size_t(id)] = false;
  }
  return allowed;
}

template <class T>
std::vector<beam_search::continuation> beam_search::best_continuations(std::size_t sequence, std::span<const T> rows,
                                                                       const std::vector<char>& allowed) const {
  const beam_type& beam = beams_[sequence];
  std::vector<continuation> all;
  for (std::size_t k = 0; k < beam.size(); ++k) {
    const beam_hypothesis& h = beam[k];
    if (h.ended) {
      all.push_back({k, options_.end, h.log_probability, h.score, false});
      continue;
    }
    const std::span<const T> row = rows.subspan(k * allowed.size(), allowed.size());
    check(row, first_row(sequence) + k);
    const double length = double(h.ids.size() + 1 - beginnings_[sequence]);
    for (const std::int32_t token : most_probable(row, allowed)) {
      const double log_probability = h.log_probability + double(row[std::size_t(token)]);
      all.push_back({k, token, log_probability, log_probability / std::pow(length, options_.length_exponent), true});
    }
  }
  if (all.empty())
    refuse("at position " + std::to_string(position_) + " no token can continue sequence " + std::to_string(sequence) +
           ": each is excluded or has probability 0");
  std::ranges::stable_sort(all, [](const continuation& x, const continuation& y) { return x.score > y.score; });
  all.resize(std::min(all.size(), options_.width));
  return all;
}

template <class T>
void beam_search::check(std::span<const T> row, std::size_t number) const {
  for (std::size_t token = 0; token < row.size(); ++token)
    if (!(row[token] <= T(rounding)))
      refuse("at position " + std::to_string(position_) + " the log probability of token " + std::to_string(token) + " in row " +
             std::to_string(number % group_size_) + " of group " + std::to_string(number / group_size_) + " is " +
             std::to_string(row[token]) + (std::isnan(row[token]) ? "" : ", above 0: logits less their logsumexp are log probabilities"));
}

template <class T>
std::vector<std::int32_t> beam_search::most_probable(std::span<const T> row, const std::vector<char>& allowed) const {
  std::vector<std::int32_t> tokens;
  for (std::size_t id = 0; id < row.size(); ++id)
    if (allowed[id] && row[id] >= std::numeric_limits<T>::lowest()) tokens.push_back(std::int32_t(id));
  const std::size_t kept = std::min(options_.width, tokens.size());
  std::ranges::partial_sort(tokens, tokens.begin() + std::ptrdiff_t(kept), [&](std::int32_t x, std::int32_t y) {
    return row[std::size_t(x)] > row[std::size_t(y)] || (row[std::size_t(x)] == row[std::size_t(y)] && x < y);
  });
  tokens.resize(kept);
  return tokens;
}

#endif

}}  // namespace gshard::v0

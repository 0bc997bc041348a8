// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Reproducible imbalance of a mixture of experts: the workloads W0 to W7 give the experts that each token chooses.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/core/base/random.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace gshard { inline namespace v0 {

/// The workloads of a benchmark of imbalance. Each isolates one cause of it.
enum class workload : std::uint8_t {
  balanced,         ///< W0: every expert is chosen equally often.
  hot_expert_set,   ///< W1: a few experts get half of the first choices.
  hot_rank,         ///< W2: the experts of one rank get half of the first choices.
  spread_heat,      ///< W3: as many hot experts as in W2, spread over all ranks.
  ragged_sources,   ///< W4: sources have different numbers of tokens.
  zero_load,        ///< W5: no token chooses the experts of one rank, nor one expert of each other rank.
  rotating_hotspot, ///< W6: the hot rank of W2 is another one in every step.
  burst,            ///< W7: uniform, but in `burst_steps` of every `burst_period` steps as W2.
};
inline constexpr std::array all_workloads{workload::balanced,       workload::hot_expert_set, workload::hot_rank,
                                          workload::spread_heat,    workload::ragged_sources, workload::zero_load,
                                          workload::rotating_hotspot, workload::burst};

constexpr std::string_view name(workload w) {
  constexpr std::string_view names[]{"W0_balanced",       "W1_hot_expert_set", "W2_hot_rank",         "W3_spread_heat",
                                     "W4_ragged_sources", "W5_zero_load",      "W6_rotating_hotspot", "W7_burst"};
  return names[std::size_t(w)];
}

/// The choices of tokens in a workload: a pure function of workload, seed and step. `ranks` and `sources` belong to the workload, not to
/// the mesh. The same tokens therefore choose the same experts on any number of devices. Ranks have successive experts. Every token chooses
/// k different experts.
struct routing_workload {
  workload what = workload::balanced;
  std::uint64_t seed = 0;
  int experts = 8;
  int ranks = 4;              ///< Blocks of successive experts; from 1 to `experts`.
  int sources = 4;            ///< Blocks of successive tokens, such as token groups.
  std::int64_t tokens = 256;  ///< Tokens per source.
  int k = 2;                  ///< Choices per token, from 1 to `experts`.

  static constexpr std::uint32_t burst_period = 16, burst_steps = 4;

  /// True if a source has this token; otherwise it is padding. Only in W4 there is padding.
  constexpr bool is_real(int source, std::int64_t token) const {
    if (what != workload::ragged_sources) return true;
    const std::int64_t level = (source + std::int64_t(word(0, 0, 2) % std::uint32_t(sources))) % sources + 1;
    return token < (tokens * level + sources - 1) / sources;
  }

  /// The experts that a token chooses, in the order of its choices. `chosen` has k elements.
  constexpr void choose(std::uint32_t step, int source, std::int64_t token, std::span<int> chosen) const {
    const auto t = std::uint64_t(source * tokens + token);
    const heat hot = heat_of(step);
    for (std::size_t j = 0; j < std::size_t(k); ++j) {
      const std::uint64_t i = t * std::uint64_t(k) + j;
      if (what == workload::balanced) chosen[j] = int((i + word(step, 0, 1)) % std::uint64_t(experts));
      else chosen[j] = draw(hot, word(step, i, 0), chosen.first(j));
    }
  }

  /// The number of real tokens that choose each expert.
  constexpr std::vector<std::int64_t> loads(std::uint32_t step) const {
    std::vector<std::int64_t> load(std::size_t(experts), 0);
    std::vector<int> chosen(std::size_t(k), 0);
    for (int source = 0; source < sources; ++source)
      for (std::int64_t t = 0; t < tokens && is_real(source, t); ++t) {
        choose(step, source, t, chosen);
        for (const int e : chosen) ++load[std::size_t(e)];
      }
    return load;
  }
  /// Logits [sources, tokens, experts] from which any top-k gating makes these choices, in this order: 2k, 2k - 2, ..., and 0 for the
  /// others.
  constexpr std::vector<float> logits(std::uint32_t step) const {
    std::vector<float> all(std::size_t(sources * tokens * experts), 0.0f);
    std::vector<int> chosen(std::size_t(k), 0);
    for (int source = 0; source < sources; ++source)
      for (std::int64_t t = 0; t < tokens; ++t) {
        choose(step, source, t, chosen);
        for (int j = 0; j < k; ++j)
          all[std::size_t((source * tokens + t) * experts + chosen[std::size_t(j)])] = float(2 * (k - j));
      }
    return all;
  }
  /// The mask [sources, tokens] for gating: 1 for a real token, 0 for padding.
  constexpr std::vector<float> mask() const {
    std::vector<float> all;
    for (int source = 0; source < sources; ++source)
      for (std::int64_t t = 0; t < tokens; ++t) all.push_back(is_real(source, t) ? 1.0f : 0.0f);
    return all;
  }

 private:
  /// The probabilities of experts, in proportion to their weights: `cold` or `hot`. The weights are integers, so all machines draw the same
  /// experts.
  struct heat {
    enum class of : std::uint8_t { nothing, block, stride, zero } shape = of::nothing;
    int first = 0, count = 0;  // hot experts: `count` successive ones, or one per rank; in W5: the rank without load
    std::int64_t cold = 1, hot = 1;
  };

  constexpr std::uint32_t word(std::uint32_t step, std::uint64_t index, std::uint32_t stream) const {
    return random_words({seed, step, 16 * std::uint32_t(what) + stream}, index / 4)[index % 4];
  }
  constexpr int first_of_rank(int rank) const { return int(std::int64_t(rank) * experts / ranks); }
  /// `count` hot experts, which get half of the first choices together.
  constexpr heat half_to(heat::of shape, int first, int count) const {
    const int cold = experts - count;
    return {shape, first, count, cold > 0 ? count : 1, cold > 0 ? cold : 1};
  }
  constexpr heat hot_rank(int rank) const {
    return half_to(heat::of::block, first_of_rank(rank), first_of_rank(rank + 1) - first_of_rank(rank));
  }
  constexpr heat heat_of(std::uint32_t step) const {
    const auto choice = [&](int n) { return int(word(0, 0, 1) % std::uint32_t(n)); };  // the same in all steps
    switch (what) {
      case workload::hot_expert_set: {
        const int count = experts >= 16 ? experts / 8 : 1;
        return half_to(heat::of::block, choice(experts - count + 1), count);
      }
      case workload::hot_rank: return hot_rank(choice(ranks));
      case workload::spread_heat: {
        const int count = (experts + ranks - 1) / ranks;
        return half_to(heat::of::stride, choice(experts), count);
      }
      case workload::zero_load: return {heat::of::zero, choice(ranks), 0, 1, 0};
      case workload::rotating_hotspot: return hot_rank(int((std::uint32_t(choice(ranks)) + step) % std::uint32_t(ranks)));
      case workload::burst: return step % burst_period < burst_period - burst_steps ? heat{} : hot_rank(choice(ranks));
      default: return {};
    }
  }
  constexpr std::int64_t weight(const heat& h, int e) const {
    switch (h.shape) {
      case heat::of::block: return e >= h.first && e < h.first + h.count ? h.hot : h.cold;
      case heat::of::stride: {
        const int from_first = (e - h.first + experts) % experts;  // the hot ones: floor(i * experts / count)
        const int i = int((std::int64_t(from_first) * h.count + experts - 1) / experts);
        return i < h.count && std::int64_t(i) * experts / h.count == from_first ? h.hot : h.cold;
      }
      case heat::of::zero: {
        const int rank = int(((std::int64_t(e) + 1) * ranks - 1) / experts);
        const bool is_first = e == first_of_rank(rank) && first_of_rank(rank + 1) - e > 1;
        return rank == h.first || is_first ? 0 : 1;
      }
      default: return 1;
    }
  }
  /// An expert that the token has not chosen yet.
  constexpr int draw(const heat& h, std::uint32_t random, std::span<const int> before) const {
    const auto is_new = [&](int e) {
      for (const int b : before)
        if (b == e) return false;
      return true;
    };
    for (const bool by_weight : {true, false}) {  // if all others have weight 0, they are equally likely
      std::int64_t total = 0;
      for (int e = 0; e < experts; ++e) total += is_new(e) ? (by_weight ? weight(h, e) : 1) : 0;
      auto at = std::int64_t((std::uint64_t(random) * std::uint64_t(total)) >> 32);
      for (int e = 0; e < experts && total > 0; ++e) {
        if (!is_new(e)) continue;
        at -= by_weight ? weight(h, e) : 1;
        if (at < 0) return e;
      }
    }
    return 0;
  }
};

}}  // namespace gshard::v0

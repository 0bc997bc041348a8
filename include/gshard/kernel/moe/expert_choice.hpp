// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Expert choice (arXiv 2202.09368): each expert of a mixture of experts chooses its tokens.

#include <gshard/comm/error.hpp>
#include <gshard/kernel/moe/gating.hpp>
#include <gshard/kernel/threads.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 { namespace kernel {

/// In every group, each expert takes the C real tokens with the largest scores [G,S,E] (null: the gates), ties to the smaller index, NaN
/// first. Operands are those of top_k_gating. Results, with one choice of each token per expert (K = E):
/// - slot [G,S,E]: e * C + c if expert e took the token as the c-th one, else -1;
/// - weight [G,S,E]: the gate where slot is not -1, else 0;
/// - aux [G]: 0;
/// - load [G,E]: the tokens of each expert, min(C, number of real tokens);
/// - overflow [G]: real tokens that no expert took;
/// - demand [G,E]: the load.
template <class T>
void expert_choice(const T* gates, const T* mask, std::int32_t* slot, T* weight, T* aux, T* load, T* overflow, T* demand,
                   const gating_sizes& sizes, const T* scores = nullptr) {
  const std::int64_t groups = sizes.groups, tokens = sizes.tokens, experts = sizes.experts, capacity = sizes.capacity;
  if (experts * capacity > std::numeric_limits<std::int32_t>::max())
    throw error("expert_choice_gating: " + std::to_string(experts) + " experts of capacity " + std::to_string(capacity) +
                " have more slots than an int32 can number");
  const auto choose = [=](std::int64_t g) {
    thread_local std::vector<std::int64_t> by_score;
    thread_local std::vector<char> is_taken;
    by_score.resize(std::size_t(tokens));
    is_taken.assign(std::size_t(tokens), 0);
    std::int64_t* const order = by_score.data();
    const T* const real = mask ? mask + g * tokens : nullptr;
    const T* const score = (scores ? scores : gates) + g * tokens * experts;
    std::int32_t* const place = slot + g * tokens * experts;
    std::fill_n(place, tokens * experts, -1);
    std::fill_n(weight + g * tokens * experts, tokens * experts, T(0));
    std::int64_t count = 0;
    for (std::int64_t s = 0; s < tokens; ++s)
      if (!detail::is_padding(real, s)) order[count++] = s;
    const std::int64_t taken = std::min(capacity, count);
    for (std::int64_t e = 0; e < experts; ++e) {
      const auto precedes = [=](std::int64_t a, std::int64_t b) {
        const T x = score[a * experts + e], y = score[b * experts + e];
        return detail::is_larger_or_nan(x, y) || (!detail::is_larger_or_nan(y, x) && a < b);
      };
      std::partial_sort(order, order + taken, order + count, precedes);
      for (std::int64_t c = 0; c < taken; ++c) {
        const std::int64_t at = order[c] * experts + e;
        place[at] = static_cast<std::int32_t>(e * capacity + c);
        weight[g * tokens * experts + at] = gates[g * tokens * experts + at];
        is_taken[std::size_t(order[c])] = 1;
      }
    }
    for (T* const counts : {load, demand}) std::fill_n(counts + g * experts, experts, T(taken));
    aux[g] = T(0);
    overflow[g] = T(count - std::count(is_taken.begin(), is_taken.end(), char(1)));
  };
  parallel_rows(groups, tokens * experts, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t g = begin; g < end; ++g) choose(g);
  });
}

/// dgates [G,S,E] from the derivatives of weight [G,S,E]. Choices are constants.
template <class T>
void expert_choice_grad(const std::int32_t* slot, const T* dweight, T* dgates, const gating_sizes& sizes) {
  const std::int64_t width = sizes.tokens * sizes.experts;
  parallel_rows(sizes.groups, width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin * width; i < end * width; ++i) dgates[i] = slot[i] < 0 ? T(0) : dweight[i];
  });
}

}}}  // namespace gshard::v0::kernel

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Routing without slots: gives every choice of a token a row in the group of its expert, sorted by expert.

#include <gshard/comm/error.hpp>
#include <gshard/kernel/moe/expert_groups.hpp>
#include <gshard/kernel/threads.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 { namespace kernel {

/// From slot [G,S,K] of top_k_gating:
/// - row [G,S,K]: n * R + r if the choice has row r of expert group n. The rows of a group are sorted by expert, token and choice. -1 if
///   the choice has no expert, or no row is left;
/// - count [N,G,E/N]: the rows of each expert;
/// - overflow [G] (may be null): choices that got no row.
/// First choices take rows before second choices, and so on; equal choices in the order of tokens.
template <class T>
void expert_rows(const std::int32_t* slot, std::int32_t* row, std::int32_t* count, T* overflow, const expert_group_sizes& sizes) {
  const std::int64_t groups = sizes.gating.groups, tokens = sizes.gating.tokens, choices = sizes.gating.choices;
  const std::int64_t N = sizes.expert_groups, experts = sizes.gating.experts, capacity = sizes.gating.capacity;
  if (N * sizes.rows > std::numeric_limits<std::int32_t>::max())
    throw error("expert_rows: " + std::to_string(N) + " groups have more rows than an int32 can number");
  parallel_rows(groups, tokens * choices + N * experts, [&](std::int64_t begin, std::int64_t end) {
    // used: the taken rows of each group. next: the number of rows of each expert, later its next row.
    std::vector<std::int64_t> used(static_cast<std::size_t>(N)), next(static_cast<std::size_t>(N * experts));
    for (std::int64_t g = begin; g < end; ++g) {
      const std::int32_t* const chosen = slot + g * tokens * choices;
      std::int32_t* const rows = row + g * tokens * choices;
      std::fill(used.begin(), used.end(), 0);
      std::fill(next.begin(), next.end(), 0);
      std::int64_t refused = 0;
      for (std::int64_t k = 0; k < choices; ++k)
        for (std::int64_t i = k; i < tokens * choices; i += choices) {
          rows[i] = -1;
          if (chosen[i] < 0) continue;
          const std::int64_t e = chosen[i] / capacity;
          std::int64_t& taken = used[std::size_t(e / experts)];
          if (taken == sizes.rows) {
            ++refused;
            continue;
          }
          ++taken;
          ++next[std::size_t(e)];
          rows[i] = std::int32_t(e);  // the expert, until all rows are counted
        }
      if (overflow != nullptr) overflow[g] = T(refused);
      for (std::int64_t n = 0; n < N; ++n) {
        std::int64_t first = n * sizes.rows;
        for (std::int64_t e = 0; e < experts; ++e) {
          std::int64_t& of_expert = next[std::size_t(n * experts + e)];
          count[(n * groups + g) * experts + e] = std::int32_t(of_expert);
          first += of_expert;
          of_expert = first - of_expert;
        }
      }
      for (std::int64_t i = 0; i < tokens * choices; ++i)
        if (rows[i] >= 0) rows[i] = std::int32_t(next[std::size_t(rows[i])]++);
    }
  });
}

}}}  // namespace gshard::v0::kernel

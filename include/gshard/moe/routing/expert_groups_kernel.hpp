// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Kernels that route tokens to expert groups.

#include <gshard/exec/bind/local_step.hpp>
#include <gshard/exec/kernel/threads.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/moe/routing/expert_groups.hpp>
#include <gshard/moe/routing/gating_kernel.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 { namespace kernel {

/// A gating whose experts are divided into N expert groups. Each expert group has R rows for the tokens of each token group.
struct expert_group_sizes {
  gating_sizes gating;  ///< experts: the experts of one group
  std::int64_t expert_groups = 1, rows = 0;

  std::int64_t slots() const { return gating.experts * gating.capacity; }  ///< of a group
  std::int64_t entry(std::int64_t n, std::int64_t g, std::int64_t r) const {  ///< of row r, in [N,G,R,K]
    return ((n * gating.groups + g) * rows + r) * gating.choices;
  }
};

/// From slot and weight [G,S,K] of top_k_gating:
/// - row [G,S,N]: n * R + r if the token has row r of expert group n. Tokens take rows in order. -1 if the token has no expert in the
///   group, or no row is left;
/// - group_slot [N,G,R,K]: the slots of a row's experts, numbered within the group, in the order of its choices, then -1;
/// - group_weight [N,G,R,K]: their weights, then 0;
/// - overflow [G] (may be null): choices whose token got no row.
template <class T>
void expert_group_slots(const std::int32_t* slot, const T* weight, std::int32_t* row, std::int32_t* group_slot, T* group_weight,
                        T* overflow, const expert_group_sizes& sizes) {
  const std::int64_t groups = sizes.gating.groups, tokens = sizes.gating.tokens, choices = sizes.gating.choices;
  const std::int64_t N = sizes.expert_groups, all = N * groups * sizes.rows * choices;
  if (N * sizes.rows > std::numeric_limits<std::int32_t>::max())
    throw error("send_to_expert_groups: " + std::to_string(N) + " groups have more rows than an int32 can number");
  std::fill_n(row, groups * tokens * N, -1);
  std::fill_n(group_slot, all, -1);
  std::fill_n(group_weight, all, T(0));
  parallel_rows(groups, tokens * (choices + N), [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::int64_t> used(static_cast<std::size_t>(N)), filled(used.size());  // rows of a group; entries of a token's row there
    for (std::int64_t g = begin; g < end; ++g) {
      std::fill(used.begin(), used.end(), 0);
      std::int64_t refused = 0;
      for (std::int64_t s = 0; s < tokens; ++s) {
        std::int32_t* const rows_of_token = row + (g * tokens + s) * N;
        std::fill(filled.begin(), filled.end(), 0);
        for (std::int64_t i = (g * tokens + s) * choices; i < (g * tokens + s + 1) * choices; ++i) {
          if (slot[i] < 0) continue;
          const std::int64_t n = slot[i] / sizes.slots();
          const auto at = std::size_t(n);
          if (filled[at] == 0 && used[at] < sizes.rows) rows_of_token[n] = std::int32_t(n * sizes.rows + used[at]++);
          if (rows_of_token[n] < 0) {
            ++refused;
            continue;
          }
          const std::int64_t to = sizes.entry(n, g, rows_of_token[n] - n * sizes.rows) + filled[at]++;
          group_slot[to] = std::int32_t(slot[i] - n * sizes.slots());
          group_weight[to] = weight[i];
        }
      }
      if (overflow != nullptr) overflow[g] = T(refused);
    }
  });
}

/// The derivative with respect to weight [G,S,K], from the derivative of group_weight [N,G,R,K]. Zero for choices without a slot or row.
template <class T>
void expert_group_slots_grad(const std::int32_t* slot, const std::int32_t* row, const T* dgroup_weight, T* dweight,
                             const expert_group_sizes& sizes) {
  const std::int64_t tokens = sizes.gating.tokens, choices = sizes.gating.choices, N = sizes.expert_groups;
  parallel_rows(sizes.gating.groups * tokens, choices + N, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::int64_t> filled(static_cast<std::size_t>(N));
    for (std::int64_t token = begin; token < end; ++token) {
      std::fill(filled.begin(), filled.end(), 0);
      for (std::int64_t i = token * choices; i < (token + 1) * choices; ++i) {
        const std::int64_t n = slot[i] < 0 ? 0 : slot[i] / sizes.slots();
        const std::int64_t r = slot[i] < 0 ? -1 : row[token * N + n];
        dweight[i] = r < 0 ? T(0) : dgroup_weight[sizes.entry(n, token / tokens, r - n * sizes.rows) + filled[std::size_t(n)]++];
      }
    }
  });
}

}}}  // namespace gshard::v0::kernel

namespace gshard { inline namespace v0 { namespace detail {

/// The sizes of a step that has a tensor of gating slots as operand 0, and rows [G,S,N] and slots of rows [N,G,R,K].
template <class T>
kernel::expert_group_sizes expert_group_sizes_of(const local_step<T>& step, const kernel::placement& row,
                                                 const kernel::placement& of_rows) {
  const kernel::placement& slot = step.in_place(0);
  const dim_list& dims = step.n.attr.dims;
  return {{slot.extent[0], slot.extent[1], step.plan.sizes.dim(dims[0]), step.plan.sizes.dim(dims[1]), slot.extent[2]},
          row.extent[2],
          of_rows.extent[2]};
}

template <class T>
action bind(kernel_of<op::expert_group_slots>, const local_step<T>& step) {
  return [slot = step.ids(0), weight = step.in(1), row = step.out_ids(0), group_slot = step.out_ids(1), group_weight = step.out(2),
          overflow = step.out(3), s = expert_group_sizes_of(step, step.out_place(0), step.out_place(1))](const run_context&) {
    kernel::expert_group_slots<T>(slot, weight, row, group_slot, group_weight, overflow, s);
  };
}

template <class T>
action bind(kernel_of<op::expert_group_slots_grad>, const local_step<T>& step) {
  return [slot = step.ids(0), row = step.ids(1), d = step.in(2), dweight = step.out(),
          s = expert_group_sizes_of(step, step.in_place(1), step.in_place(2))](const run_context&) {
    kernel::expert_group_slots_grad<T>(slot, row, d, dweight, s);
  };
}

}}}  // namespace gshard::v0::detail

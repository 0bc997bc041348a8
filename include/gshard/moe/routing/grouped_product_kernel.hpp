// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Kernels of experts without capacity slots: the rows of experts, and their products.

#include <gshard/exec/bind/local_step.hpp>
#include <gshard/exec/bind/looped_step.hpp>
#include <gshard/exec/kernel/gemm/contract.hpp>
#include <gshard/exec/kernel/gemm/gemm.hpp>
#include <gshard/exec/kernel/gemm/gemm_bf16.hpp>
#include <gshard/exec/kernel/threads.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/moe/routing/expert_groups_kernel.hpp>
#include <gshard/moe/routing/grouped_product.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
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

namespace gshard { inline namespace v0 { namespace kernel {

/// N expert groups of E experts; R rows for each of G token groups in each expert group; a product of [in] and [in,out] per row.
struct grouped_sizes {
  std::int64_t expert_groups = 0, groups = 0, rows = 0, experts = 0, in = 0, out = 0;
};

namespace detail {

/// gemm with alpha 1, in the given precision.
template <class T>
void gemm_in(precision rounds, bool trans_a, bool trans_b, std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t lda,
             const T* b, std::int64_t ldb, T beta, T* c, std::int64_t ldc) {
  if constexpr (std::is_same_v<T, float>)
    if (rounds == precision::bf16 && m * n * k > 0) return gemm_bf16(trans_a, trans_b, m, n, k, T(1), a, lda, b, ldb, beta, c, ldc);
  gemm(trans_a, trans_b, m, n, k, T(1), a, lda, b, ldb, beta, c, ldc);
}

/// Calls f(expert, g, first, count) for expert = n * E + e and each token group g. The rows [first, first + count) of n and g belong to it.
/// On up to `threads()` threads, one expert on one thread.
template <class F>
void for_each_expert(const std::int32_t* count, const grouped_sizes& sizes, F f) {
  const std::int64_t cost = std::max<std::int64_t>(1, sizes.groups * sizes.rows / std::max<std::int64_t>(1, sizes.experts)) *
                            sizes.in * sizes.out;
  parallel_rows(sizes.expert_groups * sizes.experts, cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t expert = begin; expert < end; ++expert) {
      const std::int64_t n = expert / sizes.experts, e = expert % sizes.experts;
      for (std::int64_t g = 0; g < sizes.groups; ++g) {
        const std::int32_t* const counts = count + (n * sizes.groups + g) * sizes.experts;
        std::int64_t first = 0;
        for (std::int64_t before = 0; before < e; ++before) first += counts[before];
        f(expert, g, first, std::int64_t(counts[e]));
      }
    }
  });
}

}  // namespace detail

/// y[n,g,r,:] = x[n,g,r,:] w[n,e,:,:] for the expert e of the row, zero in rows without an expert. x is [N,G,R,in], count [N,G,E] and y
/// [N,G,R,out]. w is [N,E,in,out], or [N,E,out,in] if `transposed`.
template <class T>
void grouped_product(const T* x, const T* w, bool transposed, const std::int32_t* count, T* y, const grouped_sizes& sizes,
                     precision rounds = precision::full) {
  const std::int64_t in = sizes.in, out = sizes.out;
  detail::for_each_expert(count, sizes, [&](std::int64_t expert, std::int64_t g, std::int64_t first, std::int64_t rows) {
    const std::int64_t n = expert / sizes.experts, all = (n * sizes.groups + g) * sizes.rows, at = all + first;
    detail::gemm_in<T>(rounds, false, transposed, rows, out, in, x + at * in, in, w + expert * in * out, transposed ? in : out, T(0),
                       y + at * out, out);
    if (expert % sizes.experts == sizes.experts - 1)
      std::fill(y + (at + rows) * out, y + (all + sizes.rows) * out, T(0));
  });
}

/// The gradient of w in grouped_product: dw[n,e,:,:] = the sum over the rows r of expert e, for all g, of x[n,g,r,:]^T dy[n,g,r,:], in
/// the order of g and r. dw is [N,E,in,out].
template <class T>
void grouped_weight_grad(const T* x, const T* dy, const std::int32_t* count, T* dw, const grouped_sizes& sizes,
                         precision rounds = precision::full) {
  const std::int64_t in = sizes.in, out = sizes.out;
  if (sizes.groups == 0) std::fill_n(dw, sizes.expert_groups * sizes.experts * in * out, T(0));
  detail::for_each_expert(count, sizes, [&](std::int64_t expert, std::int64_t g, std::int64_t first, std::int64_t rows) {
    const std::int64_t n = expert / sizes.experts, at = (n * sizes.groups + g) * sizes.rows + first;
    T* const to = dw + expert * in * out;
    if (g == 0) std::fill_n(to, in * out, T(0));
    if (rows > 0) detail::gemm_in<T>(rounds, true, false, in, out, rows, x + at * in, in, dy + at * out, out, T(1), to, out);
  });
}

}}}  // namespace gshard::v0::kernel

namespace gshard { inline namespace v0 { namespace detail {

template <class T>
action bind(kernel_of<op::expert_rows>, const local_step<T>& step) {
  const kernel::placement &slot = step.in_place(0), &count = step.out_place(1);
  const dim_list& dims = step.n.attr.dims;
  kernel::expert_group_sizes s{{slot.extent[0], slot.extent[1], count.extent[2], step.plan.sizes.dim(dims[1]), slot.extent[2]},
                               count.extent[0],
                               step.plan.sizes.dim(dims[2])};
  return [slot = step.ids(0), row = step.out_ids(0), count = step.out_ids(1), overflow = step.out(2), s](const run_context&) {
    kernel::expert_rows<T>(slot, row, count, overflow, s);
  };
}

/// The sizes of a product of rows [N,G,R,in], with results of `out` elements per row.
template <class T>
kernel::grouped_sizes grouped_sizes_of(const local_step<T>& step, std::int64_t out) {
  const kernel::placement &x = step.in_place(0), &count = step.in_place(2);
  return {x.extent[0], x.extent[1], x.extent[2], count.extent[2], x.extent[3], out};
}

template <class T>
action bind(kernel_of<op::grouped_product>, const local_step<T>& step) {
  return [x = step.in(0), w = step.in(1), transposed = step.n.rule.in[1].same(route::transposed_matrices), count = step.ids(2),
          y = step.out(), s = grouped_sizes_of(step, step.out_place().extent[3]), rounds = precision_of(step.n)](const run_context&) {
    kernel::grouped_product<T>(x, w, transposed, count, y, s, rounds);
  };
}

template <class T>
action bind(kernel_of<op::grouped_weight_grad>, const local_step<T>& step) {
  return [x = step.in(0), dy = step.in(1), count = step.ids(2), dw = step.out(), s = grouped_sizes_of(step, step.in_place(1).extent[3]),
          rounds = precision_of(step.n)](const run_context&) {
    kernel::grouped_weight_grad<T>(x, dy, count, dw, s, rounds);
  };
}

}}}  // namespace gshard::v0::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Grouped products: each row is multiplied by the matrix of its expert; and the gradients of these matrices. Rows are sorted by expert, and
// counted.

#include <gshard/kernel/gemm/contract.hpp>
#include <gshard/kernel/gemm/gemm.hpp>
#include <gshard/kernel/gemm/gemm_bf16.hpp>
#include <gshard/kernel/threads.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>

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

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Matrix multiplication of float matrices rounded to bf16, with sums in float (mixed precision).

#include <gshard/core/base/bf16.hpp>
#include <gshard/exec/kernel/gemm/bf16_unit.hpp>
#include <gshard/exec/kernel/gemm/gemm.hpp>
#include <gshard/exec/kernel/threads.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace gshard { inline namespace v0 { namespace kernel {

namespace detail {

using gshard::detail::bf16, gshard::detail::to_bf16, gshard::detail::to_float;

/// A matrix with each element multiplied by alpha and rounded to bf16, in contiguous rows. To: bf16, or a float with a value that bf16 can
/// hold. Padded with zeros to `to_rows` x `to_cols`.
template <class To>
const To* rounded(const float* from, std::int64_t rows, std::int64_t cols, std::int64_t ld, float alpha, std::int64_t to_rows,
                  std::int64_t to_cols, std::vector<To>& to) {
  to.resize(std::size_t(to_rows * to_cols));
  To* const all = to.data();
  parallel_rows(to_rows, to_cols, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      To* const row = all + i * to_cols;
      const std::int64_t used = i < rows ? cols : 0;
      for (std::int64_t j = 0; j < used; ++j) {
        const bf16 x = to_bf16(alpha * from[i * ld + j]);
        if constexpr (std::is_same_v<To, bf16>) row[j] = x;
        else row[j] = to_float(x);
      }
      std::fill(row + used, row + to_cols, To{});
    }
  });
  return all;
}

}  // namespace detail

/// Mixed precision: gemm of float matrices that are first rounded to bf16 (A times alpha), with products summed in float. Uses oneDNN if it
/// is available and the processor has a bf16 unit, which is about twice as fast as float. Otherwise uses gemm, which sums the same
/// products.
/// A template, so that only programs with matrix products compile gemm.
/// @see gemm, bf16_unit_in_use
template <class T = float>
  requires std::is_same_v<T, float>
void gemm_bf16(bool trans_a, bool trans_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float* a, std::int64_t lda,
               const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc) {
  const std::int64_t a_rows = trans_a ? k : m, a_cols = trans_a ? m : k, b_rows = trans_b ? n : k, b_cols = trans_b ? k : n;
#if GSHARD_HAS_ONEDNN
  constexpr std::int64_t large = 24 * 24 * 24;  // below this size, a call costs more than it gains
  if (m * n * k >= large && bf16_unit_in_use() != bf16_unit::float32) {
    // A row of an AMX tile holds 32 numbers. If k is not a multiple, oneDNN's kernels stop with SIGILL (2.6, 2.7: k = 63) or spread NaNs
    // from one row to others (until 3.13).
    constexpr std::int64_t tile = 32;
    const std::int64_t depth = bf16_unit_in_use() == bf16_unit::amx ? (k + tile - 1) / tile * tile : k;
    thread_local std::vector<detail::bf16> left, right;
    const detail::bf16* const x = detail::rounded(a, a_rows, a_cols, lda, alpha, trans_a ? depth : m, trans_a ? m : depth, left);
    const detail::bf16* const y = detail::rounded(b, b_rows, b_cols, ldb, 1, trans_b ? n : depth, trans_b ? depth : n, right);
    return detail::gemm_onednn({trans_a, trans_b, beta != 0, m, n, depth, ldc}, x, y, c);
  }
#endif
  thread_local std::vector<float> left, right;
  const float* const x = detail::rounded(a, a_rows, a_cols, lda, alpha, a_rows, a_cols, left);
  const float* const y = detail::rounded(b, b_rows, b_cols, ldb, 1, b_rows, b_cols, right);
  gemm<T>(trans_a, trans_b, m, n, k, 1, x, a_cols, y, b_cols, beta, c, ldc);
}

}}}  // namespace gshard::v0::kernel

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Matrix multiplication (gemm), by oneDNN, a BLAS or Eigen.

#include <gshard/core/base/build_options.hpp>
#include <gshard/exec/kernel/gemm/gemm_eigen.hpp>

// The build chooses the libraries (GSHARD_BLAS, GSHARD_ONEDNN). By default, only Eigen is used.
#if GSHARD_HAS_BLAS
#include <gshard/exec/kernel/gemm/gemm_blas.hpp>
#endif
#if GSHARD_HAS_ONEDNN
#include <gshard/exec/kernel/gemm/gemm_onednn.hpp>
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace gshard { inline namespace v0 { namespace kernel {

/// C = alpha * op(A) * op(B) + beta * C for row-major matrices with leading dimensions. op(A) is m x k, op(B) is k x n, beta is 0 (C need
/// not be initialized) or 1. All matrix products in float and double go through this function. oneDNN computes large float products if it
/// is available. A BLAS computes the others if available, otherwise Eigen. The choice depends on the extents alone, so equal calls give
/// equal bits.
template <class T>
void gemm(bool trans_a, bool trans_b, std::int64_t m, std::int64_t n, std::int64_t k, T alpha, const T* a, std::int64_t lda,
          const T* b, std::int64_t ldb, T beta, T* c, std::int64_t ldc) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    for (std::int64_t i = 0; i < m && beta == T(0); ++i) std::fill_n(c + i * ldc, n, T(0));
    return;
  }
#if GSHARD_HAS_ONEDNN
  // Below this size, a call of oneDNN costs more than its kernels gain (measured on x86-64 against OpenBLAS and Eigen).
  constexpr std::int64_t large = 96 * 96 * 96, wide = 16;
  if constexpr (std::is_same_v<T, float>)
    if (n >= wide && m >= wide && m * n * k >= large &&
        detail::gemm_onednn(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc))
      return;
#endif
#if GSHARD_HAS_BLAS
  if (detail::fits_blas(m, n, k, lda, ldb, ldc)) return detail::gemm_blas(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
#endif
  detail::gemm_eigen(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

}}}  // namespace gshard::v0::kernel

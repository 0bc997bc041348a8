// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Matrix multiplication by a BLAS.

#include <gshard/core/base/compiler.hpp>

#include <cblas.h>

#include <complex>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace kernel { namespace detail {

/// gemm by a BLAS with the C interface. Its integers have 32 bits: extents and leading dimensions must fit (`fits_blas`).
inline void gemm_blas(bool trans_a, bool trans_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float* a,
                      std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc) {
  cblas_sgemm(CblasRowMajor, trans_a ? CblasTrans : CblasNoTrans, trans_b ? CblasTrans : CblasNoTrans, int(m), int(n), int(k), alpha, a,
              int(lda), b, int(ldb), beta, c, int(ldc));
}
inline void gemm_blas(bool trans_a, bool trans_b, std::int64_t m, std::int64_t n, std::int64_t k, double alpha, const double* a,
                      std::int64_t lda, const double* b, std::int64_t ldb, double beta, double* c, std::int64_t ldc) {
  cblas_dgemm(CblasRowMajor, trans_a ? CblasTrans : CblasNoTrans, trans_b ? CblasTrans : CblasNoTrans, int(m), int(n), int(k), alpha, a,
              int(lda), b, int(ldb), beta, c, int(ldc));
}

inline void gemm_blas(bool trans_a, bool trans_b, std::int64_t m, std::int64_t n, std::int64_t k, std::complex<float> alpha,
                      const std::complex<float>* a, std::int64_t lda, const std::complex<float>* b, std::int64_t ldb,
                      std::complex<float> beta, std::complex<float>* c, std::int64_t ldc) {
  cblas_cgemm(CblasRowMajor, trans_a ? CblasTrans : CblasNoTrans, trans_b ? CblasTrans : CblasNoTrans, int(m), int(n), int(k), &alpha, a,
              int(lda), b, int(ldb), &beta, c, int(ldc));
}
inline void gemm_blas(bool trans_a, bool trans_b, std::int64_t m, std::int64_t n, std::int64_t k, std::complex<double> alpha,
                      const std::complex<double>* a, std::int64_t lda, const std::complex<double>* b, std::int64_t ldb,
                      std::complex<double> beta, std::complex<double>* c, std::int64_t ldc) {
  cblas_zgemm(CblasRowMajor, trans_a ? CblasTrans : CblasNoTrans, trans_b ? CblasTrans : CblasNoTrans, int(m), int(n), int(k), &alpha, a,
              int(lda), b, int(ldb), &beta, c, int(ldc));
}

template <class... Extents>
constexpr bool fits_blas(Extents... e) {
  return ((e <= 0x7fffffff) && ...);
}

}}}}  // namespace gshard::v0::kernel::detail

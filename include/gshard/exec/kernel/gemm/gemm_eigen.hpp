// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Matrix multiplication by Eigen.

#include <gshard/core/base/compiler.hpp>

#include <Eigen/Core>

#include <cstdint>

static_assert(EIGEN_VERSION_AT_LEAST(3, 4, 0), "gshard: needs Eigen 3.4 or newer");

namespace gshard { inline namespace v0 { namespace kernel { namespace detail {

template <class T>
using row_major = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using const_matrix_map = Eigen::Map<const row_major<T>, Eigen::Unaligned, Eigen::OuterStride<>>;

/// Calls f with op(M): the stored row-major rows x cols matrix, or the transpose of the stored cols x rows matrix.
template <class T, class F>
void with_matrix(bool transposed, const T* data, std::int64_t rows, std::int64_t cols, std::int64_t ld, F f) {
  if (transposed) f(const_matrix_map<T>(data, cols, rows, Eigen::OuterStride<>(ld)).transpose());
  else f(const_matrix_map<T>(data, rows, cols, Eigen::OuterStride<>(ld)));
}

/// op(M) as a stored matrix: M itself, or its transpose in `room`.
template <class T>
const_matrix_map<T> as_stored(bool transposed, const T* data, std::int64_t rows, std::int64_t cols, std::int64_t ld, row_major<T>& room) {
  if (!transposed) return {data, rows, cols, Eigen::OuterStride<>(ld)};
  room = const_matrix_map<T>(data, cols, rows, Eigen::OuterStride<>(ld)).transpose();
  return {room.data(), rows, cols, Eigen::OuterStride<>(cols)};
}

/// gemm of nonempty matrices by Eigen, or by the BLAS that Eigen uses (EIGEN_USE_BLAS).
template <class T>
void gemm_eigen(bool trans_a, bool trans_b, std::int64_t m, std::int64_t n, std::int64_t k, T alpha, const T* a, std::int64_t lda,
                const T* b, std::int64_t ldb, T beta, T* c, std::int64_t ldc) {
  Eigen::Map<row_major<T>, Eigen::Unaligned, Eigen::OuterStride<>> result(c, m, n, Eigen::OuterStride<>(ldc));
  if (beta == T(0)) result.setZero();
  if constexpr (Eigen::NumTraits<T>::IsComplex) {  // transposed first: four products of complex numbers would take long to compile
    thread_local row_major<T> left, right;
    const const_matrix_map<T> x = as_stored(trans_a, a, m, k, lda, left), y = as_stored(trans_b, b, k, n, ldb, right);
    result.noalias() += alpha * x * y;
  } else {
    with_matrix(trans_a, a, m, k, lda, [&](const auto& x) {
      with_matrix(trans_b, b, k, n, ldb, [&](const auto& y) { result.noalias() += alpha * x * y; });
    });
  }
}

}}}}  // namespace gshard::v0::kernel::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/kernel/gemm_tile.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace gshard { inline namespace v0 { namespace kernel {

namespace detail {

/// The columns [0, n) of C by panels of B; A's tile rows outermost, so that they stay in the first cache.
template <int Vectors, class T>
void multiply_panels(std::int64_t m, std::int64_t n, std::int64_t k, T alpha, const strided_matrix<T>& a,
                     const T* panels, bool add, T* c, std::int64_t ldc) {
  for (std::int64_t i = 0; i < m; i += tile_rows)
    for (std::int64_t j = 0; j < n; j += panel_cols<T>)
      multiply_tile<int(tile_rows), Vectors>(k, a.from(i, 0), panels + j * k, alpha, add, c + i * ldc + j, ldc,
                                             std::min(tile_rows, m - i), std::min(panel_cols<T>, n - j));
}

}  // namespace detail

/// C = alpha * op(A) * op(B) + beta * C for row-major matrices with leading dimensions; op(A) is m x k, op(B) is
/// k x n, beta is 0 (C need not be initialised) or 1. The terms of every element are added in one fixed order that
/// does not depend on m, n or the element's place, so cutting rows or columns changes no bit.
template <class T>
void gemm(bool trans_a, bool trans_b, std::int64_t m, std::int64_t n, std::int64_t k, T alpha, const T* a,
          std::int64_t lda, const T* b, std::int64_t ldb, T beta, T* c, std::int64_t ldc) {
  constexpr std::int64_t k_block = 256, n_block = 512, m_block = 128;
  constexpr std::int64_t width = detail::panel_cols<T>;
  thread_local std::vector<T> panels, rows;
  if (m == 0 || n == 0) return;
  if (k == 0) {
    if (beta == T(0))
      for (std::int64_t i = 0; i < m; ++i) std::fill(c + i * ldc, c + i * ldc + n, T(0));
    return;
  }
  const detail::strided_matrix<T> all_a{a, trans_a ? 1 : lda, trans_a ? lda : 1};
  const detail::strided_matrix<T> all_b{b, trans_b ? 1 : ldb, trans_b ? ldb : 1};
  panels.resize(std::size_t(std::min(k, k_block) * ((std::min(n, n_block) + width - 1) / width * width)));
  const bool pack_rows = n > 2 * width && m * k > 4096;
  if (pack_rows) rows.resize(std::size_t(k_block * m_block));

  for (std::int64_t j = 0; j < n; j += n_block) {
    const std::int64_t cols = std::min(n_block, n - j);
    for (std::int64_t p = 0; p < k; p += k_block) {
      const std::int64_t depth = std::min(k_block, k - p);
      detail::pack_panels(depth, cols, all_b.from(p, j), panels.data());
      for (std::int64_t i = 0; i < m; i += m_block) {
        const std::int64_t height = std::min(m_block, m - i);
        detail::strided_matrix<T> block = all_a.from(i, p);
        if (pack_rows) {
          const std::int64_t packed_height = (height + 7) / 8 * 8;
          copy_block(reinterpret_cast<const std::byte*>(block.data), {block.row, block.col},
                     reinterpret_cast<std::byte*>(rows.data()), {1, packed_height}, {height, depth}, 2, sizeof(T));
          block = {rows.data(), 1, packed_height};
        }
        const bool add = p > 0 || beta != T(0);
        if (cols <= detail::lanes<T>)
          detail::multiply_panels<1>(height, cols, depth, alpha, block, panels.data(), add, c + i * ldc + j, ldc);
        else
          detail::multiply_panels<2>(height, cols, depth, alpha, block, panels.data(), add, c + i * ldc + j, ldc);
      }
    }
  }
}

}}}  // namespace gshard::v0::kernel

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/kernel/gemm_tile.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gshard { inline namespace v0 { namespace kernel {

namespace detail {

/// What one call of gemm keeps fixed.
template <class T>
struct product {
  T alpha;
  T* c;
  std::int64_t ldc;

  /// Rows [i, i + rows), columns [j, j + cols) of C by one tile.
  template <std::size_t Rows>
  void tile(std::int64_t i, std::int64_t rows, std::int64_t j, std::int64_t cols, std::int64_t k,
            const strided_matrix<T>& a, const T* b, std::int64_t ldb, bool add) const {
    if (cols <= lanes<T>)
      multiply_tile<Rows, 1>(k, a, b, ldb, alpha, add, c + i * ldc + j, ldc, rows, cols);
    else
      multiply_tile<Rows, 2>(k, a, b, ldb, alpha, add, c + i * ldc + j, ldc, rows, cols);
  }
  void tile(std::int64_t i, std::int64_t rows, std::int64_t j, std::int64_t cols, std::int64_t k,
            const strided_matrix<T>& a, const T* b, std::int64_t ldb, bool add) const {
    if (rows == 1)
      tile<1>(i, rows, j, cols, k, a, b, ldb, add);
    else if (rows <= tile_rows / 2)
      tile<tile_rows / 2>(i, rows, j, cols, k, a, b, ldb, add);
    else
      tile<tile_rows>(i, rows, j, cols, k, a, b, ldb, add);
  }
};

}  // namespace detail

/// C = alpha * op(A) * op(B) + beta * C for row-major matrices with leading dimensions; op(A) is m x k, op(B)
/// is k x n, beta is 0 (C need not be initialised) or 1. The terms of every element are added in one fixed
/// order that does not depend on m, n or the element's place, so cutting rows or columns changes no bit.
template <class T>
void gemm(bool trans_a, bool trans_b, std::int64_t m, std::int64_t n, std::int64_t k, T alpha, const T* a,
          std::int64_t lda, const T* b, std::int64_t ldb, T beta, T* c, std::int64_t ldc) {
  // A panel of A stays in the first cache, a block of B in the second.
  constexpr std::int64_t k_block = 384, n_block = 2048 / std::int64_t(sizeof(T)), m_block = 128;
  constexpr std::int64_t width = detail::panel_cols<T>, height = detail::panel_rows;
  if (m == 0 || n == 0) return;
  if (k == 0) {
    if (beta == T(0))
      for (std::int64_t i = 0; i < m; ++i) std::fill_n(c + i * ldc, n, T(0));
    return;
  }
  const detail::strided_matrix<T> all_a{a, trans_a ? 1 : lda, trans_a ? lda : 1};
  const detail::strided_matrix<T> all_b{b, trans_b ? 1 : ldb, trans_b ? ldb : 1};
  const detail::product<T> out{alpha, c, ldc};
  const bool pack_a = m * k > 4096 && n > 2 * width;
  const bool pack_b = trans_b || m > 2 * detail::tile_rows;

  thread_local std::vector<T> a_panels, b_panels;
  const std::int64_t most_depth = std::min(k, k_block);
  const auto grow = [](std::vector<T>& v, std::int64_t size) {
    if (std::int64_t(v.size()) < size) v.resize(std::size_t(size));
  };
  grow(b_panels, most_depth * (pack_b ? (std::min(n, n_block) + width - 1) / width * width : width));
  if (pack_a) grow(a_panels, most_depth * m_block);

  for (std::int64_t j0 = 0; j0 < n; j0 += n_block) {
    const std::int64_t cols = std::min(n_block, n - j0);
    for (std::int64_t p = 0; p < k; p += k_block) {
      const std::int64_t depth = std::min(k_block, k - p);
      const bool add = p > 0 || beta != T(0);
      const auto block_b = all_b.from(p, j0);
      const std::int64_t direct = pack_b ? 0 : cols / width * width;  // columns of B read where they are
      detail::pack_panels(depth, cols - direct, width, block_b.from(0, direct), b_panels.data());
      for (std::int64_t i0 = 0; i0 < m; i0 += m_block) {
        const std::int64_t rows = std::min(m_block, m - i0);
        const auto block_a = all_a.from(i0, p);
        if (pack_a) detail::pack_panels(depth, rows, height, block_a.transposed(), a_panels.data());
        for (std::int64_t i = 0; i < rows; i += detail::tile_rows) {
          const std::int64_t in_panel = i % height;
          const detail::strided_matrix<T> a_rows =
              pack_a
                  ? detail::strided_matrix<T>{a_panels.data() + (i - in_panel) * depth + in_panel, 1, height}
                  : block_a.from(i, 0);
          for (std::int64_t j = 0; j < cols; j += width) {
            const bool packed = j >= direct;
            out.tile(i0 + i, std::min(detail::tile_rows, rows - i), j0 + j, std::min(width, cols - j), depth,
                     a_rows, packed ? b_panels.data() + (j - direct) * depth : block_b.data + j,
                     packed ? width : block_b.row, add);
          }
        }
      }
    }
  }
}

}}}  // namespace gshard::v0::kernel

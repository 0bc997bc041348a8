// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/kernel/copy.hpp>
#include <gshard/kernel/vector.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

// The inner kernel of gemm: a tile of C in registers, and the packing that feeds it.
namespace gshard { inline namespace v0 { namespace kernel { namespace detail {

inline constexpr std::int64_t tile_rows = vector_bytes == 64 ? 8 : 4;

/// Columns of a packed panel of B, rows of a packed panel of A.
template <class T>
inline constexpr std::int64_t panel_cols = 2 * lanes<T>;
inline constexpr std::int64_t panel_rows = 16;
static_assert(panel_rows % tile_rows == 0);

template <class T>
struct strided_matrix {
  const T* data;
  std::int64_t row, col;  // strides

  strided_matrix transposed() const { return {data, col, row}; }
  strided_matrix from(std::int64_t i, std::int64_t j) const { return {data + i * row + j * col, row, col}; }
};

/// C[i][j] (+)= alpha * sum over p < k, in this order, of A[i][p] * B[p][j], for i < rows <= Rows and
/// j < cols <= Vectors * lanes. The rows of B are read in whole vectors.
template <std::size_t Rows, std::size_t Vectors, class T>
void multiply_tile(std::int64_t k, const strided_matrix<T>& a, const T* b_row, std::int64_t ldb, T alpha,
                   bool add, T* c, std::int64_t ldc, std::int64_t rows, std::int64_t cols) {
  using vec = vector<T>;
  constexpr auto lane_count = std::size_t(lanes<T>);
  const T* row[Rows];  // rows past the end repeat the last one and are not stored
  for (std::size_t i = 0; i < Rows; ++i) row[i] = a.data + std::min(std::int64_t(i), rows - 1) * a.row;

  vec sum[Rows][Vectors] = {};
  const std::int64_t end = k * a.col, step = a.col;
  for (std::int64_t p = 0; p < end; p += step, b_row += ldb) {
    vec b[Vectors];
#pragma GCC unroll 2
    for (std::size_t v = 0; v < Vectors; ++v) b[v] = load<T>(b_row + v * lane_count);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < Rows; ++i) {
      const T x = row[i][p];
#pragma GCC unroll 2
      for (std::size_t v = 0; v < Vectors; ++v) sum[i][v] += x * b[v];
    }
  }

  if (rows == std::int64_t(Rows) && cols == std::int64_t(Vectors * lane_count)) {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < Rows; ++i)
#pragma GCC unroll 2
      for (std::size_t v = 0; v < Vectors; ++v) {
        T* to = c + std::int64_t(i) * ldc + v * lane_count;
        store<T>((add ? load<T>(to) : vec{}) + alpha * sum[i][v], to);
      }
    return;
  }
  T edge[Rows][Vectors * lane_count];
  std::memcpy(edge, sum, sizeof(edge));
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j) {
      T& to = c[i * ldc + j];
      to = (add ? to : T(0)) + alpha * edge[i][j];
    }
}

/// The rows [0, k) of `cols` <= width columns of B as one k x width panel, filled up with zeros to whole
/// vectors.
template <class T>
void pack_panel(std::int64_t k, std::int64_t cols, std::int64_t width, const strided_matrix<T>& b, T* panel) {
  using tiles = transposer<T>;
  constexpr auto side = std::int64_t(tiles::side);
  const std::int64_t filled = std::min(width, (cols + lanes<T> - 1) / lanes<T> * lanes<T>);
  if (b.col == 1) {
    for (std::int64_t p = 0; p < k; ++p, panel += width) {
      std::copy_n(b.data + p * b.row, cols, panel);
      std::fill(panel + cols, panel + filled, T(0));
    }
    return;
  }
  std::int64_t p = 0;
  if (b.row == 1 && filled % side == 0)
    for (; p + side <= k; p += side)
      for (std::int64_t j = 0; j < filled; j += side) {
        typename tiles::row tile[tiles::side] = {};
        for (std::int64_t i = 0; i < std::min(side, cols - j); ++i)
          std::memcpy(&tile[i], b.data + p + (j + i) * b.col, sizeof(tile[i]));
        tiles::template exchange_all<tiles::side / 2>(tile);
        for (std::int64_t i = 0; i < side; ++i)
          std::memcpy(panel + (p + i) * width + j, &tile[i], sizeof(tile[i]));
      }
  for (; p < k; ++p)
    for (std::int64_t j = 0; j < filled; ++j)
      panel[p * width + j] = j < cols ? b.data[p * b.row + j * b.col] : T(0);
}

/// B as panels of `width` columns, one after another.
template <class T>
void pack_panels(std::int64_t k, std::int64_t n, std::int64_t width, const strided_matrix<T>& b, T* panels) {
  for (std::int64_t j = 0; j < n; j += width)
    pack_panel(k, std::min(width, n - j), width, b.from(0, j), panels + j * k);
}

}}}}  // namespace gshard::v0::kernel::detail

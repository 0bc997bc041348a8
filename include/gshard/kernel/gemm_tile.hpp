// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/kernel/copy.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

// The inner kernel of gemm: a tile of C in registers, and the packing that feeds it. Written with vector extensions of
// GCC and clang, so that it follows the target's width.
namespace gshard { inline namespace v0 { namespace kernel { namespace detail {

#if defined(__AVX512F__)
inline constexpr std::int64_t vector_bytes = 64, tile_rows = 8;
#elif defined(__AVX__)
inline constexpr std::int64_t vector_bytes = 32, tile_rows = 4;
#else
inline constexpr std::int64_t vector_bytes = 16, tile_rows = 4;
#endif

template <class T>
using vector [[gnu::vector_size(vector_bytes)]] = T;

template <class T>
inline constexpr std::int64_t lanes = vector_bytes / std::int64_t(sizeof(T));

/// Columns of a panel of B.
template <class T>
inline constexpr std::int64_t panel_cols = 2 * lanes<T>;

template <class T>
vector<T> load(const T* from) {
  vector<T> v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}
template <class T>
void store(const vector<T>& v, T* to) {
  std::memcpy(to, &v, sizeof(v));
}

template <class T>
struct strided_matrix {
  const T* data;
  std::int64_t row, col;  // strides

  strided_matrix from(std::int64_t i, std::int64_t j) const { return {data + i * row + j * col, row, col}; }
};

/// C[i][j] (+)= alpha * sum over p < k, in this order, of A[i][p] * panel[p][j], for i < rows <= Rows and
/// j < cols <= Vectors * lanes. The panel has panel_cols columns.
template <int Rows, int Vectors, class T>
void multiply_tile(std::int64_t k, const strided_matrix<T>& a, const T* panel, T alpha, bool add, T* c,
                   std::int64_t ldc, std::int64_t rows, std::int64_t cols) {
  using vec = vector<T>;
  const T* row[Rows];  // rows past the end repeat the last one and are not stored
  for (int i = 0; i < Rows; ++i) row[i] = a.data + std::min<std::int64_t>(i, rows - 1) * a.row;

  vec sum[Rows][Vectors] = {};
  const std::int64_t end = k * a.col, step = a.col;
  for (std::int64_t p = 0; p < end; p += step, panel += panel_cols<T>) {
    vec b[Vectors];
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) b[v] = load<T>(panel + v * lanes<T>);
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const T x = row[i][p];
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) sum[i][v] += x * b[v];
    }
  }

  if (rows == Rows && cols == Vectors * lanes<T>) {
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) {
        T* to = c + i * ldc + v * lanes<T>;
        store<T>((add ? load<T>(to) : vec{}) + alpha * sum[i][v], to);
      }
    return;
  }
  T edge[Rows][std::size_t(Vectors * lanes<T>)];
  std::memcpy(edge, sum, sizeof(edge));
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j) {
      T& to = c[i * ldc + j];
      to = (add ? to : T(0)) + alpha * edge[i][j];
    }
}

/// Panels of B, one after another, each k x panel_cols, the last one filled up with zeros.
template <class T>
void pack_panels(std::int64_t k, std::int64_t n, const strided_matrix<T>& b, T* panels) {
  constexpr std::int64_t width = panel_cols<T>;
  for (std::int64_t j = 0; j < n; j += width, panels += k * width) {
    const std::int64_t cols = std::min(width, n - j);
    const T* from = b.data + j * b.col;
    if (cols == width && b.col == 1) {
      for (std::int64_t p = 0; p < k; ++p) std::memcpy(panels + p * width, from + p * b.row, width * sizeof(T));
      continue;
    }
    if (cols < width) std::fill(panels, panels + k * width, T(0));
    copy_block(reinterpret_cast<const std::byte*>(from), {b.row, b.col}, reinterpret_cast<std::byte*>(panels),
               {width, 1}, {k, cols}, 2, sizeof(T));
  }
}

}}}}  // namespace gshard::v0::kernel::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The block-cyclic matrices of ScaLAPACK as local blocks. Needs no ScaLAPACK.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/exec/process/error.hpp>
#include <gshard/exec/tensor/local_block.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 {

/// The position of a process in a BLACS grid, as `blacs_gridinfo` returns it.
struct blacs_grid {
  int rows = 1, columns = 1;
  int row = 0, column = 0;  ///< of this process
};

/// scalapack_blocks(a, descriptor, grid): this process's blocks of a block-cyclic matrix. `a`: its local memory, column-major.
/// `descriptor`: the nine numbers of `descinit`; the context is not read. The global array has the extents {M, N}. A process outside the
/// grid, for which BLACS gives the row -1, has no blocks.
/// Throws: `gshard::error` if the descriptor is not of a dense matrix (type 1), or if a number is out of range.
/// @see from_local_blocks
template <class T>
std::vector<local_block<T>> scalapack_blocks(T* a, std::span<const int, 9> descriptor, const blacs_grid& grid) {
  const std::int64_t m = descriptor[2], n = descriptor[3], mb = descriptor[4], nb = descriptor[5], leading = descriptor[8];
  const int first_row = descriptor[6], first_column = descriptor[7];
  if (descriptor[0] != 1)
    throw error("scalapack_blocks: a descriptor of type " + std::to_string(descriptor[0]) + "; dense matrices have type 1");
  if (grid.row == -1 && grid.column == -1) return {};
  if (grid.rows < 1 || grid.columns < 1 || grid.row < 0 || grid.row >= grid.rows || grid.column < 0 || grid.column >= grid.columns)
    throw error("scalapack_blocks: process (" + std::to_string(grid.row) + ", " + std::to_string(grid.column) + ") is not in a grid of " +
                std::to_string(grid.rows) + " x " + std::to_string(grid.columns));
  if (m < 0 || n < 0 || mb < 1 || nb < 1 || first_row < 0 || first_row >= grid.rows || first_column < 0 || first_column >= grid.columns)
    throw error("scalapack_blocks: the descriptor has an extent, a block size or a source that is out of range");
  const auto skipped = [](std::int64_t at, std::int64_t first, std::int64_t processes) { return (at - first + processes) % processes; };
  const std::int64_t skipped_rows = skipped(grid.row, first_row, grid.rows);
  const std::int64_t skipped_columns = skipped(grid.column, first_column, grid.columns);
  std::vector<local_block<T>> blocks;
  std::int64_t local_rows = 0;
  for (std::int64_t i = skipped_rows * mb; i < m; i += grid.rows * mb) local_rows += std::min(mb, m - i);
  if (leading < std::max<std::int64_t>(1, local_rows))
    throw error("scalapack_blocks: the leading dimension is " + std::to_string(leading) + ", this process has " +
                std::to_string(local_rows) + " rows");
  std::int64_t at_column = 0;
  for (std::int64_t j = skipped_columns * nb; j < n; j += grid.columns * nb, at_column += nb) {
    std::int64_t at_row = 0;
    for (std::int64_t i = skipped_rows * mb; i < m; i += grid.rows * mb, at_row += mb)
      blocks.push_back({a + at_row + at_column * leading, {i, j}, {std::min(mb, m - i), std::min(nb, n - j)}, {1, leading}});
  }
  return blocks;
}

}}  // namespace gshard::v0

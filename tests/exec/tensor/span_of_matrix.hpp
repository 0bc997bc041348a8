// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

/// A row-major matrix with the functions of std::mdspan, which g++ 12 does not have.
template <class T>
struct span_of_matrix {
  using element_type = T;
  T* first;
  std::size_t rows, columns;
  static constexpr std::size_t rank() { return 2; }
  std::size_t extent(std::size_t d) const { return d == 0 ? rows : columns; }
  std::size_t stride(std::size_t d) const { return d == 0 ? columns : 1; }
  std::size_t size() const { return rows * columns; }
  T* data_handle() const { return first; }
};

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace bench {

/// C = A B of n x n matrices by ScaLAPACK's p?gemm, in blocks of 256 on a grid of all MPI processes.
template <class T>
class scalapack_gemm {
 public:
  using element = T (*)(std::int64_t row, std::int64_t column);

  scalapack_gemm(int rows, int columns, int n, element a, element b);
  scalapack_gemm(const scalapack_gemm&) = delete;
  scalapack_gemm& operator=(const scalapack_gemm&) = delete;
  ~scalapack_gemm();

  void run();
  /// Calls f(row, column, element of C) for the elements on this process.
  void for_each(const std::function<void(std::int64_t, std::int64_t, T)>& f) const;

 private:
  int n_, context_ = 0, row_ = 0, column_ = 0, rows_, columns_, height_ = 0, width_ = 0;
  std::array<int, 9> layout_{};  // the same for all three
  std::vector<T> a_, b_, c_;     // columns, one after another

  std::int64_t global_row(int i) const;
  std::int64_t global_column(int j) const;
};

}  // namespace bench

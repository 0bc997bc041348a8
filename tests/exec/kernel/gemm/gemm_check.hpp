// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../support.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>

namespace test {

/// Compares a product by `gemm`, with random transpositions, leading dimensions, alpha and beta, with plain sums.
template <class T, class Gemm>
void check_gemm(Gemm gemm, std::int64_t m, std::int64_t n, std::int64_t k, std::mt19937& gen) {
  CAPTURE(m);
  CAPTURE(n);
  CAPTURE(k);
  const bool trans_a = pick(gen, 0, 1) == 0, trans_b = pick(gen, 0, 1) == 0;
  const std::int64_t lda = (trans_a ? m : k) + pick(gen, 0, 3), ldb = (trans_b ? k : n) + pick(gen, 0, 3),
                     ldc = n + pick(gen, 0, 3);
  const auto a = random_values<T>((trans_a ? k : m) * lda, gen),
             b = random_values<T>((trans_b ? n : k) * ldb, gen);
  const T alpha = pick(gen, 0, 1) == 0 ? T(1) : T(-0.5), beta = static_cast<T>(pick(gen, 0, 1));
  auto c = random_values<T>(m * ldc, gen);
  if (beta == T(0))
    for (std::int64_t i = 0; i < m; ++i)
      std::fill_n(c.begin() + i * ldc, n, std::numeric_limits<T>::quiet_NaN());
  const auto before = c;
  gemm(trans_a, trans_b, m, n, k, alpha, a.data(), lda, b.data(), ldb, beta, c.data(), ldc);
  double worst = 0;
  bool untouched = true;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < ldc; ++j) {
      const auto at = static_cast<std::size_t>(i * ldc + j);
      if (j >= n) {
        untouched = untouched && c[at] == before[at];
        continue;
      }
      double sum = 0;
      for (std::int64_t p = 0; p < k; ++p)
        sum += static_cast<double>(a[static_cast<std::size_t>(trans_a ? p * lda + i : i * lda + p)]) *
               static_cast<double>(b[static_cast<std::size_t>(trans_b ? j * ldb + p : p * ldb + j)]);
      const double expected =
          static_cast<double>(alpha) * sum + (beta == T(0) ? 0 : static_cast<double>(before[at]));
      worst = std::max(worst, std::abs(static_cast<double>(c[at]) - expected));
    }
  CHECK(untouched);
  CHECK(worst <= static_cast<double>(std::numeric_limits<T>::epsilon()) * (4 + static_cast<double>(k)));
}

/// Random shapes, down to `least`, and some with several blocks in every direction.
template <class T, class Gemm>
void check_gemm(Gemm gemm, std::int64_t least) {
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    const std::int64_t most = seed % 8 == 0 ? 150 : 40;
    check_gemm<T>(gemm, pick(gen, least, most), pick(gen, least, most), pick(gen, least, most), gen);
  }
  std::mt19937 gen(1);
  for (int repeat = 0; repeat < 4; ++repeat) {
    check_gemm<T>(gemm, 133, 530, 70, gen);
    check_gemm<T>(gemm, 20, 40, 800, gen);
    check_gemm<T>(gemm, 131, 270, 390, gen);
  }
}

}  // namespace test

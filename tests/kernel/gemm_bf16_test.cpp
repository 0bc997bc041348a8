// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/kernel/gemm_bf16.hpp>

#include "gemm_check.hpp"

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace ks = gshard::kernel;

TEST_CASE("gemm_bf16: the product of rounded matrices, whatever library multiplies them") {
  // The matrices hold what bf16 can, and alpha does not add digits: so it must be gemm's product.
  std::mt19937 gen(7);
  for (int i = 0; i < 200; ++i) {
    const std::int64_t most = i % 4 == 0 ? 120 : 30, m = test::pick(gen, 1, most), n = test::pick(gen, 1, most), k = test::pick(gen, 0, most);
    const bool ta = test::pick(gen, 0, 1) == 1, tb = test::pick(gen, 0, 1) == 1;
    const std::int64_t lda = (ta ? m : k) + test::pick(gen, 0, 3), ldb = (tb ? k : n) + test::pick(gen, 0, 3), ldc = n + test::pick(gen, 0, 3);
    auto a = test::random_values<float>((ta ? k : m) * lda, gen), b = test::random_values<float>((tb ? n : k) * ldb, gen);
    for (auto* v : {&a, &b})
      for (float& x : *v) x = ks::to_float(ks::to_bf16(x));
    const float alpha = i % 3 == 0 ? 1.0f : -0.5f, beta = i % 2 == 0 ? 0.0f : 1.0f;
    auto c = test::random_values<float>(m * ldc, gen), expected = c;
    ks::gemm_bf16(ta, tb, m, n, k, alpha, a.data(), lda, b.data(), ldb, beta, c.data(), ldc);
    ks::gemm<float>(ta, tb, m, n, k, alpha, a.data(), lda, b.data(), ldb, beta, expected.data(), ldc);
    for (std::size_t j = 0; j < c.size(); ++j) CHECK(c[j] == doctest::Approx(expected[j]).epsilon(1e-5));
  }
}

TEST_CASE("gemm_bf16: rounds its operands, not its sums") {
  const float a = 1 + 1.0f / 1024, b = 1;  // a is rounded to 1
  float c = 1.0f / 4096;
  ks::gemm_bf16(false, false, 1, 1, 1, 1, &a, 1, &b, 1, 1, &c, 1);
  CHECK(c == 1 + 1.0f / 4096);
}

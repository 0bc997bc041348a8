// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/kernel/gemm/gemm_bf16.hpp>

#include "gemm_check.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace ks = gshard::kernel;

TEST_CASE("gemm_bf16: the product of rounded matrices, whatever library multiplies them") {
  // The elements are exact in bf16, and alpha adds no digits. Therefore the product must equal gemm's.
  std::mt19937 gen(7);
  for (int i = 0; i < 200; ++i) {
    const std::int64_t most = i % 4 == 0 ? 120 : 30, m = test::pick(gen, 1, most), n = test::pick(gen, 1, most),
                       k = test::pick(gen, 0, most);
    const bool ta = test::pick(gen, 0, 1) == 1, tb = test::pick(gen, 0, 1) == 1;
    const std::int64_t lda = (ta ? m : k) + test::pick(gen, 0, 3), ldb = (tb ? k : n) + test::pick(gen, 0, 3),
                       ldc = n + test::pick(gen, 0, 3);
    auto a = test::random_values<float>((ta ? k : m) * lda, gen), b = test::random_values<float>((tb ? n : k) * ldb, gen);
    for (auto* v : {&a, &b})
      for (float& x : *v) x = gshard::detail::to_float(gshard::detail::to_bf16(x));
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

namespace {

/// Matrices of eighths, whose products have exact sums, with one non-finite value. gemm_bf16 must give the bits of gemm, and NaN in the
/// same elements.
bool is_exact(bool ta, bool tb, std::int64_t m, std::int64_t n, std::int64_t k, float beta, float odd_one, std::mt19937& gen) {
  const auto eighths = [&](std::int64_t size) {
    std::vector<float> v(static_cast<std::size_t>(size));
    for (float& x : v) x = float(test::pick(gen, -8, 8)) / 8;
    return v;
  };
  auto a = eighths(m * k), b = eighths(k * n), c = eighths(m * n);
  auto& with = test::pick(gen, 0, 1) == 0 ? a : b;
  with[static_cast<std::size_t>(test::pick(gen, 0, std::int64_t(with.size()) - 1))] = odd_one;
  auto expected = c;
  ks::gemm_bf16(ta, tb, m, n, k, 1, a.data(), ta ? m : k, b.data(), tb ? k : n, beta, c.data(), n);
  ks::gemm<float>(ta, tb, m, n, k, 1, a.data(), ta ? m : k, b.data(), tb ? k : n, beta, expected.data(), n);
  for (std::size_t i = 0; i < c.size(); ++i)
    if (std::isnan(expected[i]) ? !std::isnan(c[i]) : c[i] != expected[i]) return false;
  return true;
}

}  // namespace

// A row of a matrix unit's tile holds 32 numbers. Libraries treat the remainder of k specially.
TEST_CASE("gemm_bf16: every length of the sums") {
  struct shape {
    std::int64_t m, n;
    bool ta, tb;
  };
  std::mt19937 gen(11);
  for (const shape s : {shape{133, 9, true, false}, {111, 32, false, false}, {111, 124, false, true}, {75, 30, true, true}})
    for (std::int64_t k = 1; k <= 130; ++k) {
      CAPTURE(s.m);
      CAPTURE(s.n);
      CAPTURE(k);
      CHECK(is_exact(s.ta, s.tb, s.m, s.n, k, float(k % 2), 0.5f, gen));
    }
}

TEST_CASE("gemm_bf16: a NaN or an infinity stays in its row or column") {
  std::mt19937 gen(12);
  for (int i = 0; i < 400; ++i) {
    const std::int64_t m = test::pick(gen, 1, 150), n = test::pick(gen, 1, i % 2 == 0 ? 150 : 16), k = test::pick(gen, 1, 150);
    CAPTURE(m);
    CAPTURE(n);
    CAPTURE(k);
    const float odd_one = i % 3 == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
    CHECK(is_exact(test::pick(gen, 0, 1) == 1, test::pick(gen, 0, 1) == 1, m, n, k, float(i / 2 % 2), odd_one, gen));
  }
}

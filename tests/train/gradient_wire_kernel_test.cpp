// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/train/gradient_wire_kernel.hpp>

#include "../exec/kernel/support.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

using namespace test;

TEST_CASE_TEMPLATE("round_with_feedback: sent is bf16, and sent + residual is exactly what there was", T, float, double) {
  for (const std::size_t n : {std::size_t(0), std::size_t(1), std::size_t(63), std::size_t(1000)}) {
    std::vector<T> residual(n), g(n), sent(n);
    for (int step = 0; step < 5; ++step) {
      for (std::size_t i = 0; i < n; ++i) g[i] = T(std::sin(double(i * 7 + std::size_t(step)))) * T(std::exp2(int(i % 40) - 20));
      const std::vector<T> before = residual;
      ks::round_with_feedback(residual.data(), g.data(), sent.data(), std::int64_t(n));
      for (std::size_t i = 0; i < n; ++i) {
        CHECK(float(sent[i]) == gshard::detail::to_float(gshard::detail::to_bf16(float(g[i] + before[i]))));
        CHECK(sent[i] + residual[i] == g[i] + before[i]);
        CHECK(std::abs(residual[i]) <= std::abs(g[i] + before[i]) / 255);
      }
    }
  }
}

TEST_CASE("round_with_feedback: NaN and infinities are sent; so is what rounds to infinity; the residual stays") {
  using limits = std::numeric_limits<float>;
  const std::vector<float> g{limits::quiet_NaN(), -limits::infinity(), limits::max()};
  std::vector<float> residual{1, 2, 3}, sent(3);
  ks::round_with_feedback(residual.data(), g.data(), sent.data(), 3);
  CHECK(std::isnan(sent[0]));
  CHECK(sent[1] == -limits::infinity());
  CHECK(sent[2] == limits::infinity());
  CHECK(residual == std::vector<float>{1, 2, 3});
}

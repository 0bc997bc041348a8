// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/kernel/move/cast.hpp>

#include "../support.hpp"

#include <limits>
#include <vector>

using namespace test;

TEST_CASE_TEMPLATE("cast: to integers towards zero, the nearest integer beyond them, the lowest of NaN", T, float, double) {
  using limits = std::numeric_limits<T>;
  constexpr std::int32_t lowest = std::numeric_limits<std::int32_t>::lowest(), highest = std::numeric_limits<std::int32_t>::max();
  const std::vector<T> x{T(2.9), T(-2.9), T(-0.0), T(2147483648.0), T(-2147483648.0), limits::max(), -limits::infinity(), limits::quiet_NaN()};
  std::vector<std::int32_t> y(x.size());
  ks::cast(x.data(), y.data(), std::int64_t(x.size()));
  CHECK(y == std::vector<std::int32_t>{2, -2, 0, highest, lowest, highest, lowest, lowest});
}

TEST_CASE("cast: between floating-point types, what is not finite stays so") {
  const std::vector<double> x{0.1, 1e300, -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()};
  std::vector<float> y(x.size());
  ks::cast(x.data(), y.data(), std::int64_t(x.size()));
  CHECK(y[0] == 0.1F);
  CHECK(y[1] == std::numeric_limits<float>::infinity());
  CHECK(y[2] == -std::numeric_limits<float>::infinity());
  CHECK(y[3] != y[3]);
}

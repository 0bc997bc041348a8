// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/kernel/move/cast.hpp>

#include "../support.hpp"

#include <array>
#include <complex>
#include <cstdint>
#include <limits>
#include <vector>

using namespace test;

TEST_CASE_TEMPLATE("cast: to integers towards zero, the nearest integer beyond them, the lowest of NaN", T, float, double) {
  using limits = std::numeric_limits<T>;
  constexpr std::int32_t lowest = std::numeric_limits<std::int32_t>::lowest(), highest = std::numeric_limits<std::int32_t>::max();
  const std::vector<T> x{
      T(2.9), T(-2.9), T(-0.0), T(2147483648.0), T(-2147483648.0), limits::max(), -limits::infinity(), limits::quiet_NaN()};
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

TEST_CASE("cast: between integers, the nearest one; to bool, whether a number is not 0") {
  const std::vector<std::int64_t> x{5, -(std::int64_t(1) << 40), std::int64_t(1) << 40, 0};
  std::vector<std::int32_t> y(x.size());
  ks::cast(x.data(), y.data(), std::int64_t(x.size()));
  CHECK(y == std::vector<std::int32_t>{5, std::numeric_limits<std::int32_t>::lowest(), std::numeric_limits<std::int32_t>::max(), 0});
  std::array<bool, 4> is{};
  ks::cast(x.data(), is.data(), 4);
  CHECK(is == std::array{true, true, true, false});
  const std::array<double, 3> numbers{0.25, -0.0, std::numeric_limits<double>::quiet_NaN()};
  ks::cast(numbers.data(), is.data(), 3);
  CHECK(is == std::array{true, false, true, false});
}

TEST_CASE_TEMPLATE("cast: half precision through float; a quarter is exact, what is not finite stays so", Half, gshard::half,
                   gshard::bfloat16) {
  const std::vector<double> x{0.25, -2, 1e300, std::numeric_limits<double>::quiet_NaN()};
  std::vector<Half> y(x.size());
  std::vector<double> back(x.size());
  std::vector<std::int32_t> whole(x.size());
  ks::cast(x.data(), y.data(), std::int64_t(x.size()));
  ks::cast(y.data(), back.data(), std::int64_t(x.size()));
  ks::cast(y.data(), whole.data(), std::int64_t(x.size()));
  CHECK(back[0] == 0.25);
  CHECK(back[1] == -2);
  CHECK(back[2] == std::numeric_limits<double>::infinity());
  CHECK(back[3] != back[3]);
  CHECK(whole[1] == -2);
}

TEST_CASE("cast: real numbers become a part of complex ones, and the other way") {
  using complex = std::complex<double>;
  const std::vector<float> x{1, -2};
  std::vector<complex> z(2);
  ks::cast(x.data(), z.data(), 2);
  CHECK(z == std::vector<complex>{{1, 0}, {-2, 0}});
  ks::cast(x.data(), z.data(), 2, true);
  CHECK(z == std::vector<complex>{{0, 1}, {0, -2}});
  std::vector<float> part(2);
  ks::cast(z.data(), part.data(), 2, true);
  CHECK(part == x);
  ks::cast(z.data(), part.data(), 2);
  CHECK(part == std::vector<float>{0, 0});
  std::vector<std::complex<float>> narrow(2);
  ks::cast(z.data(), narrow.data(), 2);
  CHECK(narrow == std::vector<std::complex<float>>{{0, 1}, {0, -2}});
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/base/exponential.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace {

template <class T>
void check(T lowest, T highest) {
  using gshard::detail::exponential;
  std::mt19937 gen(1);
  std::uniform_real_distribution<T> uniform(lowest, highest);
  double worst = 0;
  for (int i = 0; i < 200000; ++i) {
    const T x = i % 2 == 0 ? uniform(gen) : uniform(gen) / 64;
    const long double exact = std::exp(static_cast<long double>(x));
    worst =
        std::max(worst, static_cast<double>(std::abs(static_cast<long double>(exponential(x)) / exact - 1)));
  }
  CHECK(worst < static_cast<double>(std::numeric_limits<T>::epsilon()));
  constexpr T inf = std::numeric_limits<T>::infinity();
  CHECK(exponential(T(0)) == T(1));
  CHECK(exponential(-inf) == T(0));
  CHECK(exponential(inf) == inf);
  CHECK(exponential(2 * highest) == inf);
  CHECK(exponential(2 * lowest) == T(0));
  CHECK(std::isnan(exponential(std::numeric_limits<T>::quiet_NaN())));
}

static_assert(gshard::detail::exponential(0.0F) == 1.0F);

}  // namespace

TEST_CASE("exponential: within one unit in the last place") {
  check<float>(-87, 88.7F);
  check<double>(-708, 709.7);
}

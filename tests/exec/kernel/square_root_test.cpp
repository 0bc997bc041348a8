// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/kernel/square_root.hpp>

#include "support.hpp"

#include <cmath>
#include <limits>

namespace {

template <class T>
void check() {
  std::mt19937 gen(1);
  std::uniform_real_distribution<T> exponent(std::numeric_limits<T>::min_exponent,
                                             std::numeric_limits<T>::max_exponent - 1);
  T worst = 0;
  for (int i = 0; i < 100000; ++i) {
    const T x = std::exp2(exponent(gen));
    worst = std::max(worst, std::abs(gshard::kernel::square_root(x) / std::sqrt(x) - 1));
  }
  CHECK(worst <= std::numeric_limits<T>::epsilon());
  constexpr T inf = std::numeric_limits<T>::infinity();
  CHECK(gshard::kernel::square_root(T(0)) == T(0));
  CHECK(gshard::kernel::square_root(inf) == inf);
  CHECK(std::isnan(gshard::kernel::square_root(std::numeric_limits<T>::quiet_NaN())));
}

}  // namespace

TEST_CASE("square_root: within one unit in the last place") {
  check<float>();
  check<double>();
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/optim/schedule.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>

namespace gs = gshard;

TEST_CASE("inverse_square_root: a straight way up, then the square root down") {
  const gs::inverse_square_root rate{.peak = 2e-3, .warmup = 100};
  for (std::int64_t step = 0; step < 100; ++step)
    CHECK(rate(step) == doctest::Approx(2e-3 * double(step + 1) / 100).epsilon(1e-12));
  for (std::int64_t step = 99; step < 5000; step += 7)
    CHECK(rate(step) == doctest::Approx(2e-3 * std::sqrt(100 / double(step + 1))).epsilon(1e-12));
  CHECK(rate(99) == 2e-3);
  CHECK(rate(100) < rate(99));
  CHECK(rate(98) < rate(99));
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/train/schedule.hpp>

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

TEST_CASE("linear, cosine, constant and piecewise schedules, with and without warm-up") {
  for (const double warmup : {0.0, 10.0}) {
    const gs::constant_rate constant{.peak = 2, .warmup = warmup};
    const gs::linear_decay linear{.peak = 2, .warmup = warmup, .steps = 110, .end = 0.5};
    const gs::cosine_decay cosine{.peak = 2, .warmup = warmup, .steps = 110, .end = 0.5};
    const gs::piecewise_rate<3> pieces{.rates = {2, 1, 0.25}, .begins = {50, 80}, .warmup = warmup};
    for (std::int64_t step = 0; step < 200; ++step) {
      const double t = double(step) + 1;
      if (t <= warmup) {
        for (const double rate : {constant(step), linear(step), cosine(step), pieces(step)}) CHECK(rate == doctest::Approx(2 * t / 10));
        continue;
      }
      const double done = t >= 110 ? 1 : (t - warmup) / (110 - warmup);
      CHECK(constant(step) == 2);
      CHECK(linear(step) == doctest::Approx(2 - 1.5 * done));
      CHECK(cosine(step) == doctest::Approx(0.5 + 0.75 * (1 + std::cos(3.14159265358979 * done))));
      CHECK(pieces(step) == (step < 50 ? 2 : step < 80 ? 1 : 0.25));
    }
    CHECK(linear(109) == 0.5);
    CHECK(cosine(109) == doctest::Approx(0.5));
  }
}

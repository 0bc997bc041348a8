// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "calibrate/statistics.hpp"

#include <doctest/doctest.h>

TEST_CASE("calibrate: the typical time is the mean of the middle half, which outliers do not move") {
  const calibrate::summary s = calibrate::summarize({1, 2, 3, 2, 900, 2, 0, 2});
  CHECK(s.typical == 2);
  CHECK(s.spread == 0);
  CHECK(calibrate::summarize({5}).typical == 5);
  CHECK(calibrate::summarize({}).typical == 0);
}

TEST_CASE("calibrate: times around two values spread") {
  CHECK(calibrate::summarize({1, 1, 1, 1, 3, 3, 3, 3}).spread == 1);
  CHECK(calibrate::summarize({1, 1, 1, 1, 3, 3, 3, 3}).typical == 2);
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/sim/run/sweep_row.hpp>

#include <doctest/doctest.h>

TEST_CASE("a default row fits, without a memory limit") {
  const gshard::sweep_row row;
  CHECK(row.fits);
  CHECK(row.limit == 0);
  CHECK(row.seconds == 0);
  CHECK(row.core_years == 0);
}

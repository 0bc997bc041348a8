// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/collective/overlap_choice.hpp>

#include <doctest/doctest.h>

#include <cstddef>

namespace gs = gshard;
using gs::detail::overlap_choice;

namespace {
// Measures all runs. The first run of each mode is slow.
overlap_choice measured(double with, double without) {
  overlap_choice c;
  c.measure();
  std::size_t runs = 0, n_with = 0;
  for (; !c.is_ready(); ++runs) {
    REQUIRE(runs < 100);
    REQUIRE(c.measures());
    n_with += c.overlaps();
    const double outlier = runs == 4 || runs == 7 ? 50 : 0;
    c.end_after(runs < 2 ? (c.overlaps() ? 100 : 0) : (c.overlaps() ? with : without) + outlier);
  }
  CHECK(n_with * 2 == runs);
  CHECK(runs == 2 + 2 * overlap_choice::samples);
  return c;
}
}  // namespace

TEST_CASE("the faster mode is chosen from medians") {
  CHECK(measured(1, 2).pays());
  CHECK_FALSE(measured(2, 1).pays());
  CHECK_FALSE(measured(1, 1).pays());
  overlap_choice c = measured(1, 2);
  c.choose(false);
  CHECK_FALSE(c.measures());
  CHECK_FALSE(c.overlaps());
}

TEST_CASE("without measurements all runs overlap") {
  overlap_choice c;
  c.begin();
  CHECK(c.overlaps());
  CHECK_FALSE(c.measures());
  CHECK_FALSE(c.is_ready());
}

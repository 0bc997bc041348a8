// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/backend/balanced_extents.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

namespace gs = gshard;
using gs::dynamic;

namespace {
std::vector<int> balanced(int n, std::vector<int> wanted) {
  return gs::balanced_extents(n, wanted);
}
}  // namespace

TEST_CASE("balanced_extents: fixed extents stay, the free ones share the quotient") {
  CHECK(balanced(6, {2, dynamic}) == std::vector{2, 3});
  CHECK(balanced(6, {dynamic, 6}) == std::vector{1, 6});
  CHECK(balanced(12, {dynamic, dynamic}) == std::vector{4, 3});
  CHECK(balanced(8, {dynamic, dynamic, dynamic}) == std::vector{2, 2, 2});
  CHECK(balanced(104, {dynamic, dynamic, dynamic}) == std::vector{13, 4, 2});
  CHECK(balanced(24, {dynamic, 2, dynamic}) == std::vector{4, 2, 3});
  CHECK(balanced(7, {dynamic, dynamic}) == std::vector{7, 1});
  CHECK(balanced(1, {}) == std::vector<int>{});
}

TEST_CASE("balanced_extents: no factorization has a smaller largest extent") {
  for (int n = 1; n <= 120; ++n) {
    CAPTURE(n);
    const std::vector<int> e = balanced(n, {dynamic, dynamic, dynamic});
    REQUIRE(gs::device_count(e) == n);
    CHECK(std::is_sorted(e.rbegin(), e.rend()));
    for (int a = 1; a <= n; ++a)
      for (int b = 1; b <= a; ++b)
        if (n % (a * b) == 0 && n / (a * b) <= b) CHECK(std::vector{a, b, n / (a * b)} >= e);
  }
}

TEST_CASE("balanced_extents: says what does not divide") {
  CHECK_THROWS_WITH_AS(balanced(6, {4, dynamic}),
                       "a mesh of 4x? cannot hold 6 devices: its fixed extents make 4", gs::error);
  CHECK_THROWS_WITH_AS(balanced(6, {3}), "a mesh of 3 cannot hold 6 devices: its fixed extents make 3",
                       gs::error);
  CHECK_THROWS_AS(balanced(2, {}), gs::error);
  CHECK_THROWS_AS(balanced(0, {dynamic}), gs::error);
  CHECK_THROWS_AS(balanced(6, {-2, dynamic}), gs::error);
}

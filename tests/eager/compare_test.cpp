// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/eager/compare.hpp>

#include <gshard/eager/reshard.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace gs = gshard;
using gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"x">>;

TEST_CASE("comparisons of tensors with tensors and numbers, on any number of devices") {
  std::vector<float> a(5 * 3), b(5 * 3);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = float(i % 7) - 3, b[i] = float(i % 5) - 2;
  a[4] = std::numeric_limits<float>::quiet_NaN();
  b[9] = std::numeric_limits<float>::infinity();
  for (const int devices : {1, 2, 7}) {
    const auto on = gs::simulate<mesh>(devices);
    const auto x = gs::from_global<float, P<"x", none>>(on, {5, 3}, a);
    const auto y = gs::from_global<float, P<none, "x">>(on, {5, 3}, b);
    const auto check = [&](const auto& t, auto expected) {
      const std::vector<float> whole = gs::to_global(t);
      REQUIRE(whole.size() == a.size());
      for (std::size_t i = 0; i < a.size(); ++i) CHECK(whole[i] == (expected(a[i], b[i]) ? 1.0f : 0.0f));
    };
    check(gs::less(x, y), [](float v, float w) { return v < w; });
    check(x < y, [](float v, float w) { return v < w; });
    check(x > y, [](float v, float w) { return v > w; });
    check(x <= y, [](float v, float w) { return v <= w; });
    check(x >= y, [](float v, float w) { return v >= w; });
    check(gs::equal(x, y), [](float v, float w) { return v == w; });
    check(gs::less(x, 1), [](float v, float) { return v < 1; });
    check(0 < x, [](float v, float) { return 0 < v; });
    check(x > 1.0, [](float v, float) { return v > 1; });
    check(x <= -1, [](float v, float) { return v <= -1; });
    check(2 >= x, [](float v, float) { return 2 >= v; });
    check(gs::equal(0.0, y), [](float, float w) { return w == 0; });
  }
}

TEST_CASE("integers are compared with integers of their type") {
  const auto x = gs::from_global<std::int32_t, P<"x">>(gs::simulate<mesh>(2), {3}, std::vector<std::int32_t>{-1, 0, 1});
  CHECK(gs::to_global(x < 1L) == std::vector<std::int32_t>{1, 1, 0});
  CHECK_THROWS_WITH_AS(static_cast<void>(x < (std::int64_t(1) << 40)), "compare: 1099511627776 is no int32", gs::error);
}

TEST_CASE("select and logic, on any number of devices") {
  const std::vector<double> a{1, -2, 3, 0, -5}, b{2, 2, 2, 2, 2};
  for (const int devices : {1, 2, 3}) {
    const auto on = gs::simulate<mesh>(devices);
    const auto x = gs::from_global<double, P<"x">>(on, {5}, a);
    const auto y = gs::from_global<double, P<none>>(on, {5}, b);
    CHECK(gs::to_global(gs::select(x < y, x, y)) == std::vector<double>{1, -2, 2, 0, -5});
    CHECK(gs::to_global(gs::select(x > 0, x, 0)) == std::vector<double>{1, 0, 3, 0, 0});
    CHECK(gs::to_global(gs::select(x, -1.0, y)) == std::vector<double>{-1, -1, -1, 2, -1});
    const auto odd = gs::cast<bool>(gs::map<[](auto v) { return v * (v - 1) * (v - 3); }>(x)), negative = gs::cast<bool>(x < 0);
    const auto as_numbers = [](const auto& mask) { return gs::to_global(gs::cast<std::int32_t>(mask)); };
    CHECK(as_numbers(gs::logical_and(odd, negative)) == std::vector<std::int32_t>{0, 1, 0, 0, 1});
    CHECK(as_numbers(gs::logical_or(odd, gs::logical_not(negative))) == std::vector<std::int32_t>{1, 1, 1, 1, 1});
    CHECK(gs::to_global(gs::select(negative, y, x)) == std::vector<double>{1, 2, 3, 0, 2});
  }
}

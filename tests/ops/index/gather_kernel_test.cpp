// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/index/gather_kernel.hpp>

#include "../../exec/kernel/support.hpp"

#include <string>

using namespace test;

TEST_CASE_TEMPLATE("gather_along, scatter_add_along: shards of the rows", T, float, double, std::int32_t) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    const std::int64_t outer = pick(gen, 0, 2) == 0 ? pick(gen, 0, 4) : 1, inner = pick(gen, 0, 20), n = pick(gen, 0, 20);
    ks::row_range rows;
    rows.total = pick(gen, 1, 10);
    rows.first = pick(gen, 0, 1) == 0 ? 0 : pick(gen, 0, rows.total);
    rows.here = pick(gen, 0, 1) == 0 ? rows.total - rows.first : pick(gen, 0, rows.total - rows.first);
    std::vector<std::int32_t> ids;
    for (std::int64_t i = 0; i < n; ++i) ids.push_back(std::int32_t(pick(gen, 0, rows.total - 1)));
    const auto numbers = [&](std::int64_t count) {
      std::vector<T> v;
      for (std::int64_t i = 0; i < count; ++i) v.push_back(T(pick(gen, -50, 50)));
      return v;
    };
    const auto x = numbers(outer * rows.here * inner), dy = numbers(outer * n * inner);
    std::vector<T> out(dy.size(), 7), dx(x.size(), 7), y(dy.size()), sums(x.size());
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = 0; i < inner; ++i) {
          const std::int64_t row = ids[std::size_t(j)] - rows.first;
          if (row < 0 || row >= rows.here) continue;
          const auto at = std::size_t((o * n + j) * inner + i), from = std::size_t((o * rows.here + row) * inner + i);
          y[at] = x[from];
          sums[from] += dy[at];
        }
    ks::gather_along(x.data(), ids.data(), out.data(), outer, rows, inner, n);
    CHECK(out == y);
    ks::scatter_add_along(ids.data(), dy.data(), dx.data(), outer, rows, inner, n);
    CHECK(dx == sums);
  }
}

TEST_CASE("gather_along, scatter_add_along: an id outside the whole table throws") {
  const std::vector<float> x(2), dy(4);
  std::vector<float> out(4), dx(2);
  const ks::row_range rows{1, 1, 3};
  for (std::int32_t bad : {-1, 3, 9}) {
    const std::vector<std::int32_t> ids{0, bad};
    const std::string where = ": id " + std::to_string(bad) + " at position 1 is outside a table of 3 rows";
    CHECK_THROWS_WITH_AS(ks::gather_along(x.data(), ids.data(), out.data(), 1, rows, 2, 2), ("gather" + where).c_str(), gshard::error);
    CHECK_THROWS_WITH_AS(ks::scatter_add_along(ids.data(), dy.data(), dx.data(), 1, rows, 2, 2), ("scatter_add" + where).c_str(),
                         gshard::error);
  }
}

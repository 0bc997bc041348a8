// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/along/sort_kernel.hpp>

#include "../../exec/kernel/support.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

using namespace test;

namespace {

template <class T>
struct ordered {
  std::vector<T> values;
  std::vector<std::int32_t> ids;
};

template <class T>
ordered<T> random_case(std::int64_t n, std::mt19937& gen) {
  using limits = std::numeric_limits<T>;
  ordered<T> c;
  for (std::int64_t i = 0; i < n; ++i) {
    c.values.push_back(T(pick(gen, -5, 5)));
    c.ids.push_back(std::int32_t(i));
    if (!limits::has_quiet_NaN) continue;
    if (pick(gen, 0, 12) == 0) c.values.back() = limits::quiet_NaN();
    if (pick(gen, 0, 12) == 0) c.values.back() = pick(gen, 0, 1) ? limits::infinity() : -limits::infinity();
  }
  std::shuffle(c.ids.begin(), c.ids.end(), gen);
  return c;
}

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](T x, T y) { return x == y || (x != x && y != y); });
}

template <class T>
ordered<T> room_for(std::int64_t n) {
  return {std::vector<T>(std::size_t(n), T(77)), std::vector<std::int32_t>(std::size_t(n), 77)};
}

template <class T>
ordered<T> top_k(const ordered<T>& c, bool by_place, std::int64_t first, std::int64_t outer, std::int64_t n, std::int64_t inner,
                 std::int64_t k, bool largest) {
  auto top = room_for<T>(outer * k * inner);
  ks::top_k(c.values.data(), by_place ? nullptr : c.ids.data(), first, top.values.data(), top.ids.data(), outer, n, inner, k, largest);
  return top;
}

}  // namespace

TEST_CASE_TEMPLATE("top_k: the best of every block's best is the first extremum, or the first NaN", T, float, double) {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    const std::int64_t n = pick(gen, 1, 12), blocks = pick(gen, 1, 4), block = (n + blocks - 1) / blocks;
    ordered<T> c = random_case<T>(n, gen);
    for (const bool largest : {false, true}) {
      ordered<T> best = room_for<T>(blocks), all = room_for<T>(1);
      for (std::int64_t b = 0; b < blocks; ++b) {
        const std::int64_t from = std::min(b * block, n), to = std::min(from + block, n);
        ks::top_k<T>(c.values.data() + from, nullptr, from, &best.values[std::size_t(b)], &best.ids[std::size_t(b)], 1, to - from, 1, 1,
                     largest, true);
      }
      ks::top_k<T>(best.values.data(), best.ids.data(), 0, all.values.data(), all.ids.data(), 1, blocks, 1, 1, largest, true);
      std::size_t expected = 0;
      for (std::size_t i = 1; i < c.values.size(); ++i) {
        const T x = c.values[i], y = c.values[expected];
        if (y == y && (x != x || (largest ? x > y : x < y))) expected = i;
      }
      CHECK(all.ids[0] == std::int32_t(expected));
    }
  }
}

TEST_CASE_TEMPLATE("top_k: the first of all, sorted", T, float, double, std::int32_t) {
  using limits = std::numeric_limits<T>;
  const T top = limits::has_infinity ? limits::infinity() : limits::max(), bottom = limits::has_infinity ? -top : limits::lowest();
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    const std::int64_t outer = pick(gen, 0, 3), n = pick(gen, 0, 20), inner = pick(gen, 0, 3), first = pick(gen, 0, 100);
    const std::int64_t k = pick(gen, 0, 2) == 0 ? n : pick(gen, 0, 25);
    const bool largest = pick(gen, 0, 1), by_place = pick(gen, 0, 1);
    const auto c = random_case<T>(outer * n * inner, gen);
    auto expected = room_for<T>(outer * k * inner);
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t i = 0; i < inner; ++i) {
        std::vector<std::tuple<bool, double, std::int32_t, T>> all;  // is NaN, value, id
        for (std::int64_t j = 0; j < n; ++j) {
          const auto at = std::size_t((o * n + j) * inner + i);
          const T v = c.values[at];
          const bool nan = v != v;
          all.emplace_back(nan == !largest, nan ? 0 : largest ? -double(v) : double(v), by_place ? std::int32_t(first + j) : c.ids[at], v);
        }
        std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
          return std::tie(std::get<0>(a), std::get<1>(a), std::get<2>(a)) < std::tie(std::get<0>(b), std::get<1>(b), std::get<2>(b));
        });
        for (std::int64_t j = 0; j < k; ++j) {
          const auto at = std::size_t((o * k + j) * inner + i);
          expected.values[at] = j < n ? std::get<3>(all[std::size_t(j)]) : largest ? bottom : top;
          expected.ids[at] = j < n ? std::get<2>(all[std::size_t(j)]) : std::numeric_limits<std::int32_t>::max();
        }
      }
    const auto found = top_k(c, by_place, first, outer, n, inner, k, largest);
    CHECK(same(found.values, expected.values));
    CHECK(found.ids == expected.ids);
  }
}

TEST_CASE("top_k: the best of the best of two shards are the best of all, whichever are best, padding of short shards last") {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    const std::int64_t n = pick(gen, 1, 20), k = pick(gen, 1, 8), cut = pick(gen, 0, n);
    const bool largest = pick(gen, 0, 1);
    const auto all = random_case<double>(n, gen);
    ordered<double> left{{all.values.begin(), all.values.begin() + cut}, {}}, right{{all.values.begin() + cut, all.values.end()}, {}};
    auto both = top_k(left, true, 0, 1, cut, 1, k, largest);
    const auto more = top_k(right, true, cut, 1, n - cut, 1, k, largest);
    both.values.insert(both.values.end(), more.values.begin(), more.values.end());
    both.ids.insert(both.ids.end(), more.ids.begin(), more.ids.end());
    const auto found = top_k(both, false, 0, 1, 2 * k, 1, k, largest), expected = top_k(all, true, 0, 1, n, 1, k, largest);
    CHECK(same(found.values, expected.values));
    CHECK(found.ids == expected.ids);
  }
}

TEST_CASE_TEMPLATE("scatter_along: the gradient of top_k, into a shard", T, float, double) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    const std::int64_t outer = pick(gen, 0, 3), k = pick(gen, 0, 8), inner = pick(gen, 0, 3), first = pick(gen, 0, 3), n = pick(gen, 0, 8);
    std::vector<std::int32_t> ids;
    std::vector<T> dy, dx(std::size_t(outer * n * inner), 7), expected(dx.size());
    for (std::int64_t i = 0; i < outer * k * inner; ++i) {
      ids.push_back(pick(gen, 0, 9) == 0 ? std::numeric_limits<std::int32_t>::max() : std::int32_t(pick(gen, 0, 12)));
      dy.push_back(T(pick(gen, -9, 9)));
      const std::int64_t o = i / (k * inner), row = ids.back() - first;
      if (row >= 0 && row < n) expected[std::size_t((o * n + row) * inner + i % inner)] += dy.back();
    }
    ks::scatter_along(ids.data(), dy.data(), dx.data(), outer, k, inner, first, n);
    CHECK(dx == expected);
  }
}

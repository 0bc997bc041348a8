// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/along/cumsum_kernel.hpp>

#include "../../exec/kernel/support.hpp"

using namespace test;

TEST_CASE_TEMPLATE("cumsum: against sums by definition", T, float, double, std::int32_t) {
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    const std::int64_t outer = pick(gen, 0, 3), n = pick(gen, 0, 12), inner = pick(gen, 0, 9);
    const bool exclusive = pick(gen, 0, 1), reverse = pick(gen, 0, 1), carried = pick(gen, 0, 1);
    std::vector<T> x, carry;  // whole numbers, whose sums are exact
    for (std::int64_t i = 0; i < outer * n * inner; ++i) x.push_back(T(pick(gen, -100, 100)));
    for (std::int64_t i = 0; i < outer * inner; ++i) carry.push_back(T(pick(gen, -100, 100)));
    std::vector<T> y(x.size(), 7), expected(x.size());
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = 0; i < inner; ++i) {
          T& sum = expected[std::size_t((o * n + j) * inner + i)];
          if (carried) sum = carry[std::size_t(o * inner + i)];
          for (std::int64_t k = 0; k < n; ++k)
            if (k == j ? !exclusive : reverse == (k > j)) sum += x[std::size_t((o * n + k) * inner + i)];
        }
    ks::cumsum(x.data(), carried ? carry.data() : nullptr, y.data(), outer, n, inner, exclusive, reverse);
    CHECK(y == expected);
  }
}

TEST_CASE("cumsum: shards that carry on give the bits of the whole") {
  std::mt19937 gen(1);
  for (const std::int64_t inner : {1, 5}) {
    const auto x = random_values<float>(20 * inner, gen);
    std::vector<float> whole(x.size()), parts(x.size());
    ks::cumsum<float>(x.data(), nullptr, whole.data(), 1, 20, inner, false, false);
    ks::cumsum<float>(x.data(), nullptr, parts.data(), 1, 12, inner, false, false);
    ks::cumsum<float>(x.data() + 12 * inner, parts.data() + 11 * inner, parts.data() + 12 * inner, 1, 8, inner, false, false);
    CHECK(parts == whole);
  }
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/moe/placement/expert_packing.hpp>

#include <gshard/core/base/random.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace gs = gshard;

TEST_CASE("an assignment is the best one") {
  for (std::uint32_t i = 0; i < 30; ++i) {
    std::uint64_t at = 0;
    const auto below = [&](int n) { return int(double(gs::uniform01({8, i, 1}, at++)) * n); };
    const std::size_t n = std::size_t(1 + below(5));
    std::vector<std::int64_t> score(n * n);
    for (std::int64_t& x : score) x = below(10);
    const auto sum = [&](const std::vector<int>& to) {
      std::int64_t all = 0;
      for (std::size_t row = 0; row < n; ++row) all += score[row * n + std::size_t(to[row])];
      return all;
    };
    std::vector<int> to(n);
    std::iota(to.begin(), to.end(), 0);
    std::int64_t best = 0;
    do best = std::max(best, sum(to));
    while (std::next_permutation(to.begin(), to.end()));
    CHECK(sum(gs::detail::best_assignment(score, n)) == best);
  }
}

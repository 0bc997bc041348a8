// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/eager/attention.hpp>

#include "every_spec.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <vector>

namespace gs = gshard;
using every_spec::numbers, every_spec::operand;
using gs::none, gs::P;

TEST_CASE("attention, causal or not, with every sharding") {
  // [batch 2, 4 queries or keys, 2 heads, depth 3]
  const std::vector<double> x = numbers<double>(2 * 4 * 2 * 3);
  const auto at = [&](std::size_t b, std::size_t t, std::size_t h, std::size_t d) { return x[((b * 4 + t) * 2 + h) * 3 + d]; };
  for (const bool causal : {false, true}) {
    std::vector<double> expected(x.size());
    for (std::size_t b = 0; b < 2; ++b)
      for (std::size_t h = 0; h < 2; ++h)
        for (std::size_t q = 0; q < 4; ++q) {
          double total = 0;
          std::vector<double> y(3);
          for (std::size_t k = 0; k < (causal ? q + 1 : 4); ++k) {
            double score = 0;
            for (std::size_t d = 0; d < 3; ++d) score += at(b, q, h, d) * at(b, k, h, d);
            const double weight = std::exp(score / std::sqrt(3.0));
            total += weight;
            for (std::size_t d = 0; d < 3; ++d) y[d] += weight * at(b, k, h, d);
          }
          for (std::size_t d = 0; d < 3; ++d) expected[((b * 4 + q) * 2 + h) * 3 + d] = y[d] / total;
        }
    const operand<double, P<none, none, none, none>, P<"x", none, none, none>, P<none, "x", none, none>, P<none, none, "x", none>> of{
        {2, 4, 2, 3}};
    for (const std::vector<int>& e : every_spec::meshes) {
      const auto on = gs::simulate<every_spec::mesh>(e);
      every_spec::for_each_spec(
          [&](const auto& t) {
            const std::vector<double> y = gs::to_global(causal ? gs::attention<true>(t, t, t) : gs::attention(t, t, t));
            REQUIRE(y.size() == expected.size());
            for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == doctest::Approx(expected[i]).epsilon(1e-12));
          },
          on, of);
    }
  }
}

TEST_CASE("grouped queries share heads of keys; extents are checked") {
  const auto on = gs::simulate<every_spec::mesh>({2, 1});
  const auto q = gs::from_global<double, P<none, "x", none, none, none>>(on, {1, 2, 2, 3, 4}, numbers<double>(48));
  const auto k = gs::from_global<double, P<none, none, none, none>>(on, {1, 5, 2, 4}, numbers<double>(40));
  CHECK(gs::attention(q, k, k).extent(3) == 3);
  const auto narrow = gs::from_global<double, P<none, none, none, none>>(on, {1, 5, 2, 3}, numbers<double>(30));
  CHECK_THROWS_AS(gs::attention(q, narrow, narrow), gs::error);
}

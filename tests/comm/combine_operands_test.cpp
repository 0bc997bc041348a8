// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/comm/combine_operands.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gs = gshard;

TEST_CASE("combine_operands: in the order of the tree, of any length, also into an operand") {
  for (const std::int64_t n : {0, 1, 15, 16, 17, 1023, 1024, 1025, 3000})
    for (std::size_t p = 1; p <= 9; ++p)
      for (std::size_t in_place = 0; in_place <= p; ++in_place) {
        CAPTURE(n);
        CAPTURE(p);
        std::vector<std::vector<float>> x(p + 1, std::vector<float>(std::size_t(n)));
        for (std::size_t m = 0; m < p; ++m)
          for (std::size_t k = 0; k < x[m].size(); ++k) x[m][k] = float(1 + m * 7 + k % 13) / 3 * float(1 << (m * 3 % 20));
        const gs::sum_order order(p);
        std::vector<float> wanted(std::size_t(n), 0);
        const auto value = [&](auto self, gs::sum_order::subtree_id t, std::size_t k) -> float {
          return t.is_operand() ? x[t.operand()][k] : self(self, order.left(t), k) + self(self, order.right(t), k);
        };
        for (std::size_t k = 0; k < wanted.size(); ++k) wanted[k] = value(value, order.root(), k);
        std::vector<float>& to = x[in_place];  // an operand, or the last list
        gs::detail::combine_operands<float>(
            gs::reduction::sum, order, order.root(), n, [&](std::size_t m) { return x[m].data(); }, to.data());
        CHECK(to == wanted);
      }
}

TEST_CASE("combine_operands: every reduction, of a subtree") {
  const std::vector<std::vector<int>> x{{1, 5}, {3, -2}, {2, 2}};
  const gs::sum_order order(3);
  const auto combined = [&](gs::reduction what, gs::sum_order::subtree_id t) {
    std::vector<int> to(2);
    gs::detail::combine_operands<int>(
        what, order, t, 2, [&](std::size_t m) { return x[m].data(); }, to.data());
    return to;
  };
  CHECK(combined(gs::reduction::sum, order.root()) == std::vector{6, 5});
  CHECK(combined(gs::reduction::max, order.root()) == std::vector{3, 5});
  CHECK(combined(gs::reduction::min, order.root()) == std::vector{1, -2});
  CHECK(combined(gs::reduction::prod, order.root()) == std::vector{6, -20});
  CHECK(combined(gs::reduction::sum, order.left(order.root())) == std::vector{4, 3});
}

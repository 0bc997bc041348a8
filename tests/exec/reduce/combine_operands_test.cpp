// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/base/bf16.hpp>
#include <gshard/exec/reduce/combine_operands.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace gs = gshard;

namespace {
/// Combines the numbers of x[m] for all operands m of a subtree.
template <class T>
void combine(gs::dtype type, gs::reduction what, const gs::sum_order& order, gs::sum_order::subtree_id t,
             const std::vector<std::vector<T>>& x, std::vector<T>& to) {
  const auto operand = [&](std::size_t m) { return reinterpret_cast<const std::byte*>(x[m].data()); };
  gs::detail::combine_operands({type, what}, order, t, std::int64_t(to.size()), operand, reinterpret_cast<std::byte*>(to.data()));
}
}  // namespace

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
        std::vector<float>& to = x[in_place];  // an operand, or the last element
        combine(gs::dtype::f32, gs::reduction::sum, order, order.root(), x, to);
        CHECK(to == wanted);
      }
}

TEST_CASE("combine_operands: every reduction, of a subtree") {
  const std::vector<std::vector<int>> x{{1, 5}, {3, -2}, {2, 2}};
  const gs::sum_order order(3);
  const auto combined = [&](gs::reduction what, gs::sum_order::subtree_id t) {
    std::vector<int> to(2);
    combine(gs::dtype::i32, what, order, t, x, to);
    return to;
  };
  CHECK(combined(gs::reduction::sum, order.root()) == std::vector{6, 5});
  CHECK(combined(gs::reduction::max, order.root()) == std::vector{3, 5});
  CHECK(combined(gs::reduction::min, order.root()) == std::vector{1, -2});
  CHECK(combined(gs::reduction::prod, order.root()) == std::vector{6, -20});
  CHECK(combined(gs::reduction::sum, order.left(order.root())) == std::vector{4, 3});
}

TEST_CASE("combine_operands: bf16 numbers are added in float, and every partial sum is rounded, within the bound") {
  using gs::detail::bf16, gs::detail::to_bf16, gs::detail::to_float;
  std::mt19937 gen(3);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (const std::int64_t n : {1, 31, 32, 1025})
    for (std::size_t p = 1; p <= 9; ++p) {
      CAPTURE(n);
      CAPTURE(p);
      std::vector<std::vector<float>> numbers(p, std::vector<float>(std::size_t(n)));
      std::vector<std::vector<bf16>> x(p, std::vector<bf16>(std::size_t(n)));
      for (std::size_t m = 0; m < p; ++m)
        for (std::size_t k = 0; k < x[m].size(); ++k) x[m][k] = to_bf16(numbers[m][k] = std::ldexp(uniform(gen), int(gen() % 5)));
      const gs::sum_order order(p);
      std::vector<bf16> sum(std::size_t(n), bf16{});
      combine(gs::dtype::bf16, gs::reduction::sum, order, order.root(), x, sum);
      const auto value = [&](auto self, gs::sum_order::subtree_id t, std::size_t k) -> bf16 {
        if (t.is_operand()) return x[t.operand()][k];
        return to_bf16(to_float(self(self, order.left(t), k)) + to_float(self(self, order.right(t), k)));
      };
      const double roundings = 1 + std::ceil(std::log2(double(p)));
      for (std::size_t k = 0; k < sum.size(); ++k) {
        CHECK(sum[k] == value(value, order.root(), k));
        double exact = 0, size = 0;
        for (std::size_t m = 0; m < p; ++m) {
          exact += double(numbers[m][k]);
          size += std::abs(double(numbers[m][k]));
        }
        CHECK(std::abs(double(to_float(sum[k])) - exact) <= 1.03 * roundings / 256 * size);
      }
    }
}

TEST_CASE("combine_operands: sums of bf16 keep NaN, and overflow to infinity; a maximum is exact") {
  using gs::detail::bf16, gs::detail::to_bf16, gs::detail::to_float;
  constexpr float nan = std::numeric_limits<float>::quiet_NaN(), large = 3e38f;
  const std::vector<std::vector<bf16>> x{{to_bf16(nan), to_bf16(large), to_bf16(2)}, {to_bf16(1), to_bf16(large), to_bf16(-0.5f)}};
  const gs::sum_order order(2);
  const auto combined = [&](gs::reduction what) {
    std::vector<bf16> to(3);
    combine(gs::dtype::bf16, what, order, order.root(), x, to);
    return std::vector{to_float(to[0]), to_float(to[1]), to_float(to[2])};
  };
  const auto sum = combined(gs::reduction::sum), most = combined(gs::reduction::max);
  CHECK(std::isnan(sum[0]));
  CHECK(sum[1] == std::numeric_limits<float>::infinity());
  CHECK(sum[2] == 1.5f);
  CHECK(std::isnan(most[0]));
  CHECK(most[2] == 2);
}

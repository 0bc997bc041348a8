// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/eager/einsum.hpp>

#include <gshard/eager/reshard.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace gs = gshard;
using gs::axes, gs::none, gs::P, gs::partial, gs::tensor;
using mesh = gs::mesh<gs::axis<"x">, gs::axis<"y">>;

namespace {

std::vector<double> numbers(std::int64_t n, int seed) {
  std::vector<double> v(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = double(int(i * 31 + std::size_t(seed)) % 17) / 4 - 2;
  return v;
}

struct matrices {
  std::int64_t m, k, n;
  std::vector<double> a = numbers(m * k, 1), b = numbers(k * n, 2),
                      product = std::vector<double>(std::size_t(m * n), 0.0);

  matrices(std::int64_t rows, std::int64_t inner, std::int64_t columns) : m(rows), k(inner), n(columns) {
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t l = 0; l < k; ++l)
          product[std::size_t(i * n + j)] += a[std::size_t(i * k + l)] * b[std::size_t(l * n + j)];
  }
};

/// Checks that the product of two matrices in these layouts has this type, and is right on every mesh.
template <class A, class B, class Result>
void check_product() {
  for (const std::vector<int>& e : std::vector<std::vector<int>>{{1, 1}, {2, 1}, {1, 3}, {2, 2}, {2, 3}}) {
    const auto on = gs::simulate<mesh>(e);
    for (const matrices& c : {matrices(6, 12, 6), matrices(5, 7, 3), matrices(1, 2, 1)}) {
      const auto y = gs::einsum<"AB,BC->AC">(gs::from_global<double, A>(on, {c.m, c.k}, c.a),
                                             gs::from_global<double, B>(on, {c.k, c.n}, c.b));
      static_assert(std::is_same_v<decltype(y), const tensor<double, Result>>);
      CHECK(gs::to_global(y) == c.product);
    }
  }
}

}  // namespace

TEST_CASE("einsum: the layouts of the operands are the layout of the result") {
  check_product<P<none, none>, P<none, none>, P<none, none>>();
  check_product<P<"x", none>, P<none, none>, P<"x", none>>();
  check_product<P<"x", none>, P<none, "y">, P<"x", "y">>();
  check_product<P<axes<"x", "y">, none>, P<none, none>, P<axes<"x", "y">, none>>();
}

TEST_CASE("einsum: an axis that cuts a contracted index leaves a partial sum") {
  check_product<P<none, "x">, P<"x", none>, P<none, none, partial<"x">>>();
  check_product<P<"y", "x">, P<"x", none>, P<"y", none, partial<"x">>>();
  check_product<P<none, axes<"x", "y">>, P<axes<"x", "y">, none>, P<none, none, partial<"x", "y">>>();
}

TEST_CASE("einsum of one tensor") {
  const auto on = gs::simulate<mesh>(std::vector{2, 3});
  const std::vector<double> a = numbers(5 * 7, 1);
  const auto t = gs::from_global<double, P<"x", "y">>(on, {5, 7}, a);
  const tensor<double, P<"y", "x">> turned = gs::einsum<"ab->ba">(t);
  const std::vector<double> whole = gs::to_global(turned);
  for (std::size_t i = 0; i < 5; ++i)
    for (std::size_t j = 0; j < 7; ++j) CHECK(whole[j * 5 + i] == a[i * 7 + j]);
  const tensor<double, P<"x", partial<"y">>> rows = gs::einsum<"ab->a">(t);
  const std::vector<double> sums = gs::to_global(rows);
  for (std::size_t i = 0; i < 5; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < 7; ++j) sum += a[i * 7 + j];
    CHECK(sums[i] == sum);
  }
}

TEST_CASE("einsum names the dim whose extents differ, and operands on different clusters") {
  const auto on = gs::simulate<mesh>(std::vector{2, 2}), elsewhere = gs::simulate<mesh>(std::vector{2, 2});
  const auto a = gs::from_global<double, P<none, none>>(on, {2, 3}, numbers(6, 1));
  const auto b = gs::from_global<double, P<none, none>>(on, {4, 2}, numbers(8, 1));
  const auto c = gs::from_global<double, P<none, none>>(elsewhere, {3, 2}, numbers(6, 1));
  CHECK_THROWS_WITH_AS((gs::einsum<"AB,BC->AC">(a, b)),
                       "AB,BC->AC: dim 0 of operand 1 has extent 4, an earlier operand has 3 there",
                       gs::error);
  CHECK_THROWS_WITH_AS((gs::einsum<"AB,BC->AC">(a, c)), "AB,BC->AC: the operands belong to different clusters",
                       gs::error);
}

TEST_CASE("einsum: numpy's forms") {
  const matrices c(4, 6, 3);
  const auto on = gs::simulate<mesh>(std::vector{2, 2});
  const auto a = gs::from_global<double, P<"x", none>>(on, {4, 6}, c.a);
  const auto b = gs::from_global<double, P<none, "y">>(on, {6, 3}, c.b);
  CHECK(gs::to_global(gs::einsum<"AB,BC">(a, b)) == c.product);
  CHECK(gs::to_global(gs::einsum<"...B,BC->...C">(a, b)) == c.product);
  CHECK(gs::to_global(gs::einsum<"B...,...BC">(b, b)).size() == 9);  // B is summed: "...C"
}

TEST_CASE("einsum: up to sixteen operands") {
  const matrices c(2, 2, 2);
  const auto on = gs::simulate<mesh>(std::vector{2, 1});
  const auto a = gs::from_global<double, P<"x", none>>(on, {2, 2}, c.a);
  // a^8, by eight and by sixteen operands
  std::vector<double> power = c.a;
  for (int i = 1; i < 8; ++i) {
    std::vector<double> next(4);
    for (std::size_t k = 0; k < 4; ++k) next[k] = power[k / 2 * 2] * c.a[k % 2] + power[k / 2 * 2 + 1] * c.a[2 + k % 2];
    power = next;
  }
  const auto near = [&](const std::vector<double>& found) {
    double worst = 0;
    for (std::size_t k = 0; k < 4; ++k) worst = std::max(worst, std::abs(found[k] - power[k]) / (1 + std::abs(power[k])));
    return found.size() == 4 && worst < 1e-12;
  };
  CHECK(near(gs::to_global(gs::einsum<"ab,bc,cd,de,ef,fg,gh,hi->ai">(a, a, a, a, a, a, a, a))));
  const auto one = gs::from_global<double, P<none>>(on, {2}, std::vector<double>{1, 1});
  CHECK(near(gs::to_global(
      gs::einsum<"ab,bc,cd,de,ef,fg,gh,hi,a,b,c,d,e,f,g,h->ai">(a, a, a, a, a, a, a, a, one, one, one, one, one, one, one, one))));
}

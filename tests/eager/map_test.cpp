// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/eager/map.hpp>

#include <gshard/eager/einsum.hpp>
#include <gshard/eager/reshard.hpp>

#include "every_spec.hpp"

#include <Eigen/Core>
#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace gs = gshard;
using gs::none, gs::P, gs::partial, gs::tensor;
using mesh = gs::mesh<gs::axis<"x">, gs::axis<"y">>;

namespace {

std::vector<float> numbers(std::size_t n) {
  std::vector<float> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = float(i % 11) - 5;
  return v;
}

constexpr auto twice_plus = [](auto a, auto b) { return 2 * a + b; };
const std::vector<std::vector<int>> extents_of_mesh{{1, 1}, {2, 1}, {1, 3}, {2, 2}, {2, 3}};

}  // namespace

TEST_CASE("map: elementwise, with scalars") {
  const std::vector<float> a = numbers(5 * 7), b = numbers(1);
  for (const std::vector<int>& e : extents_of_mesh) {
    const auto on = gs::simulate<mesh>(e);
    const auto s = gs::from_global<float, P<"x", "y">>(on, {5, 7}, a), t = gs::from_global<float, P<"x", "y">>(on, {5, 7}, numbers(35));
    const auto y = gs::map<twice_plus>(s, t);
    static_assert(std::is_same_v<decltype(y), const tensor<float, P<"x", "y">>>);
    const std::vector<float> whole = gs::to_global(y);
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(whole[i] == 3 * a[i]);
    const auto scalar = gs::from_global<float, P<>>(on, {}, b);
    const std::vector<float> first = gs::to_global(gs::map<twice_plus>(scalar, s)), last = gs::to_global(s + scalar);
    for (std::size_t i = 0; i < a.size(); ++i) {
      CHECK(first[i] == 2 * b[0] + a[i]);
      CHECK(last[i] == a[i] + b[0]);
    }
  }
}

TEST_CASE("a + b: equal partial sums stay pending") {
  const std::vector<float> a = numbers(4 * 6), ones(6 * 3, 1.0f);
  for (const std::vector<int>& e : extents_of_mesh) {
    const auto on = gs::simulate<mesh>(e);
    const auto left = gs::from_global<float, P<none, "x">>(on, {4, 6}, a);
    const auto right = gs::from_global<float, P<"x", none>>(on, {6, 3}, ones);
    const auto product = gs::einsum<"AB,BC->AC">(left, right);
    const auto both = product + product;
    static_assert(std::is_same_v<decltype(both), const tensor<float, P<none, none, partial<"x">>>>);
    const std::vector<float> once = gs::to_global(product), twice = gs::to_global(both);
    for (std::size_t i = 0; i < once.size(); ++i) CHECK(twice[i] == 2 * once[i]);
    // A complete tensor and a partial sum: the sum is completed first.
    const std::vector<float> mixed =
        gs::to_global(product + gs::from_global<float, P<none, none>>(on, {4, 3}, std::vector(12, 1.0f)));
    for (std::size_t i = 0; i < once.size(); ++i) CHECK(mixed[i] == once[i] + 1);
  }
}

TEST_CASE("map names the dim whose extents differ") {
  const auto on = gs::simulate<mesh>(std::vector{1, 1});
  const auto a = gs::from_global<float, P<none, none>>(on, {2, 3}, numbers(6));
  const auto b = gs::from_global<float, P<none, none>>(on, {2, 4}, numbers(8));
  CHECK_THROWS_WITH_AS((gs::map<twice_plus>(a, b)),
                       "map: dim 1 of operand 1 has extent 4, an earlier operand has 3 there", gs::error);
  CHECK_THROWS_WITH_AS((a + b), "add: dim 1 of operand 1 has extent 4, an earlier operand has 3 there",
                       gs::error);
  // A dim of extent 1 is not repeated.
  const auto row = gs::from_global<float, P<none, none>>(on, {1, 3}, numbers(3));
  CHECK_THROWS_WITH_AS((a + row), "add: dim 0 of operand 1 has extent 1, an earlier operand has 2 there", gs::error);
}

TEST_CASE("arithmetic of tensors and numbers, relu and cast, with every sharding") {
  const every_spec::operand<double, P<none, none>, P<"x", none>, P<"y", "x">> matrix{{5, 7}};
  const std::vector<double> a = every_spec::numbers<double>(35);
  const auto each = [&](auto f) {
    std::vector<double> made;
    for (const double v : a) made.push_back(f(v));
    return made;
  };
  every_spec::check(each([](double v) { return v - 2 * v; }), [](const auto& x) { return x - 2 * x; }, matrix);
  every_spec::check(each([](double v) { return v * v + 1; }), [](const auto& x) { return x * x + 1.0; }, matrix);
  every_spec::check(each([](double v) { return (3 - v) / (v + 1); }), [](const auto& x) { return (3 - x) / (1 + x); }, matrix);
  every_spec::check(each([](double v) { return -v / 2; }), [](const auto& x) { return -x / 2; }, matrix);
  every_spec::check(each([](double v) { return v > 2 ? v - 2 : 0; }), [](const auto& x) { return gs::relu(x - 2); }, matrix);
  every_spec::check(each([](double v) { return std::sin(v) + std::exp(-v); }),
                    [](const auto& x) { return gs::map<[](auto v) { return gs::sin(v) + gs::exp(-v); }>(x); }, matrix);
  every_spec::check(std::vector<std::int32_t>{0, 1, 2, 0, 1}, [](const auto& x) { return gs::cast<std::int32_t>(x); },
                    every_spec::operand<double, P<none>, P<"x">>{{5}, {0.5, 1.5, 2, -0.5, 1}});
  const auto on = gs::simulate<mesh>({2, 1});
  const auto x = gs::from_global<float, P<"x">>(on, {2}, std::vector{1.0f, 1 / 3.0f});
  CHECK(gs::to_global(gs::cast<float>(gs::cast<gs::bfloat16>(x))) == std::vector{1.0f, 0.333984375f});
}

TEST_CASE("complex tensors and their parts") {
  const auto on = gs::simulate<mesh>({2, 1});
  const auto x = gs::from_global<double, P<"x">>(on, {3}, std::vector<double>{1, 2, 3});
  const auto z = gs::complex(x, -x);
  CHECK(gs::to_global(z) == std::vector<std::complex<double>>{{1, -1}, {2, -2}, {3, -3}});
  CHECK(gs::to_global(gs::real(z)) == std::vector<double>{1, 2, 3});
  CHECK(gs::to_global(gs::imag(z * z)) == std::vector<double>{-2, -8, -18});
}

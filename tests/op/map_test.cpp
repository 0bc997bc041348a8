// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/op/map.hpp>

#include <gshard/op/einsum.hpp>
#include <gshard/op/reshard.hpp>

#include <doctest/doctest.h>

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

TEST_CASE("map: elementwise, lower ranks broadcast along leading dims") {
  const std::vector<float> a = numbers(5 * 7), b = numbers(7);
  for (const std::vector<int>& e : extents_of_mesh) {
    const auto on = gs::simulate<mesh>(e);
    const auto s = gs::from_global<float, P<"x", "y">>(on, {5, 7}, a);
    const auto y = gs::map<twice_plus>(s, gs::from_global<float, P<none>>(on, {7}, b));
    static_assert(std::is_same_v<decltype(y), const tensor<float, P<"x", "y">>>);
    const std::vector<float> whole = gs::to_global(y);
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(whole[i] == 2 * a[i] + b[i % 7]);
    // The vector may stand first: dims are lined up from the last all the same.
    const std::vector<float> turned =
        gs::to_global(gs::map<twice_plus>(gs::from_global<float, P<"x">>(on, {7}, b), s));
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(turned[i] == 2 * b[i % 7] + a[i]);
  }
}

TEST_CASE("map of square matrices lines dims up by position") {
  const auto on = gs::simulate<mesh>(std::vector{2, 2});
  const std::vector<float> a = numbers(9), b = numbers(3);
  const std::vector<float> whole = gs::to_global(gs::map<twice_plus>(
      gs::from_global<float, P<"x", none>>(on, {3, 3}, a), gs::from_global<float, P<"x">>(on, {3}, b)));
  for (std::size_t i = 0; i < 9; ++i) CHECK(whole[i] == 2 * a[i] + b[i % 3]);
}

TEST_CASE("a + b: equal pending sums stay pending") {
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
    // A complete tensor and a pending sum: the sum is completed first.
    const std::vector<float> mixed =
        gs::to_global(product + gs::from_global<float, P<none, none>>(on, {4, 3}, std::vector(12, 1.0f)));
    for (std::size_t i = 0; i < once.size(); ++i) CHECK(mixed[i] == once[i] + 1);
  }
}

TEST_CASE("map names the dim whose extents differ") {
  const auto on = gs::simulate<mesh>(std::vector{1, 1});
  const auto a = gs::from_global<float, P<none, none>>(on, {2, 3}, numbers(6));
  const auto b = gs::from_global<float, P<none>>(on, {4}, numbers(4));
  CHECK_THROWS_WITH_AS((gs::map<twice_plus>(a, b)),
                       "map: dim 0 of operand 1 has extent 4, an earlier operand has 3 there", gs::error);
  CHECK_THROWS_WITH_AS((a + b), "add: dim 0 of operand 1 has extent 4, an earlier operand has 3 there",
                       gs::error);
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/eager/evaluate.hpp>

#include <gshard/ops/index/gather.hpp>
#include <gshard/ops/reduce/reduce.hpp>

#include "every_spec.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <vector>

namespace gs = gshard;
using every_spec::check, every_spec::numbers, every_spec::operand;
using gs::none, gs::P, gs::tensor;

TEST_CASE("a function of verbs, with every sharding") {
  const std::vector<double> table = numbers<double>(4 * 3), bias = numbers<double>(3);
  const std::vector<std::int32_t> ids = numbers<std::int32_t>(6);
  std::vector<double> expected;
  for (const std::int32_t i : ids)
    for (std::size_t c = 0; c < 3; ++c) expected.push_back(2 * table[std::size_t(i) * 3 + c] + bias[c]);
  const auto rows = [](const auto& t, const auto& i, const auto& b) {
    return gs::evaluate<"NM", "I", "M">([](auto from, auto at, auto plus) { return 2.0 * gs::gather(from, at) + plus; }, t, i, b);
  };
  check(expected, rows, operand<double, P<none, none>, P<"x", none>, P<none, "x">>{{4, 3}}, operand<std::int32_t, P<none>, P<"x">>{{6}},
        operand<double, P<none>, P<"y">>{{3}});
}

TEST_CASE("several results; dims without letters match by position") {
  const auto on = gs::simulate<every_spec::mesh>({2, 1});
  const auto x = gs::from_global<double, P<"x", none>>(on, {3, 2}, std::vector<double>{1, 2, 3, 4, 5, 6});
  const auto [sum, product] = gs::evaluate([](auto a, auto b) { return std::tuple{a + b, a * b}; }, x, x);
  static_assert(std::is_same_v<decltype(sum), const tensor<double, P<"x", none>>>);
  CHECK(gs::to_global(sum) == std::vector<double>{2, 4, 6, 8, 10, 12});
  CHECK(gs::to_global(product) == std::vector<double>{1, 4, 9, 16, 25, 36});
  // A result may be a partial sum, but not a partial maximum.
  const auto columns = gs::evaluate([](auto a) { return std::tuple{gs::sum<"AB->B">(a), gs::reduce_max<"AB->B">(a)}; }, x);
  static_assert(std::tuple_element_t<0, std::remove_const_t<decltype(columns)>>::is_partial);
  CHECK(gs::to_global(std::get<0>(columns)) == std::vector<double>{9, 12});
  CHECK(gs::to_global(std::get<1>(columns)) == std::vector<double>{5, 6});
}

TEST_CASE("one letter has one extent") {
  const auto on = gs::simulate<every_spec::mesh>({1, 1});
  const auto x = gs::from_global<double, P<none>>(on, {3}, numbers<double>(3));
  const auto y = gs::from_global<double, P<none>>(on, {4}, numbers<double>(4));
  CHECK_THROWS_WITH_AS((gs::evaluate<"A", "A">([](auto a, auto b) { return a + b; }, x, y)),
                       "evaluate: dim 0 of operand 1 has extent 4, an earlier operand has 3 there", gs::error);
}

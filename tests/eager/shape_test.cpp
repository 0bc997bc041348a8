// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/eager/shape.hpp>

#include "every_spec.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gs = gshard;
using every_spec::check, every_spec::numbers, every_spec::operand;
using gs::none, gs::P;

namespace {
const operand<double, P<none, none>, P<"x", none>, P<"y", "x">> matrix{{5, 6}};
const std::vector<double> whole = numbers<double>(5 * 6);
/// [rows, columns] of f(r, c).
std::vector<double> made_of(std::int64_t rows, std::int64_t columns, auto f) {
  std::vector<double> made;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) made.push_back(f(r, c));
  return made;
}
double at(std::int64_t r, std::int64_t c) { return whole[std::size_t(r * 6 + c)]; }
}  // namespace

TEST_CASE("slice, pad, reverse and roll, with every sharding") {
  check(made_of(3, 6, [](auto r, auto c) { return at(1 + r, c); }), [](const auto& x) { return gs::slice<0, 1, 4>(x); }, matrix);
  check(made_of(5, 3, [](auto r, auto c) { return at(r, 2 * c); }), [](const auto& x) { return gs::slice<1, 0, 6, 2>(x); }, matrix);
  check(made_of(8, 6, [](auto r, auto c) { return r < 2 || r > 6 ? 0 : at(r - 2, c); }), [](const auto& x) { return gs::pad<0, 2, 1>(x); },
        matrix);
  check(made_of(5, 6, [](auto r, auto c) { return at(4 - r, c); }), [](const auto& x) { return gs::reverse<0>(x); }, matrix);
  check(made_of(5, 6, [](auto r, auto c) { return at(r, (c + 4) % 6); }), [](const auto& x) { return gs::roll<1, 2>(x); }, matrix);
  const auto x = gs::from_global<double, P<none, none>>(gs::on_one_device<every_spec::mesh>(), {5, 6}, whole);
  CHECK_THROWS_AS((gs::slice<0, 1, 7>(x)), gs::error);
}

TEST_CASE("concat along a dim, with every sharding") {
  const operand<double, P<none, none>, P<"x", none>> other{{2, 6}};
  const std::vector<double> second = numbers<double>(12);
  std::vector<double> expected = whole;
  expected.insert(expected.end(), second.begin(), second.end());
  expected.insert(expected.end(), second.begin(), second.end());
  check(expected, [](const auto& a, const auto& b) { return gs::concat<0>(a, b, b); }, matrix, other);
  const auto on = gs::on_one_device<every_spec::mesh>();
  const auto x = gs::from_global<double, P<none, none>>(on, {5, 6}, whole);
  const auto y = gs::from_global<double, P<none, none>>(on, {2, 6}, second);
  CHECK_THROWS_WITH_AS(gs::concat<1>(x, y), "concat: dim 0 of operand 1 has extent 2, an earlier operand has 5 there", gs::error);
}

TEST_CASE("reshapes, with every sharding") {
  check(whole, [](const auto& x) { return gs::merge_dims<0>(x); }, matrix);
  check(whole, [](const auto& x) { return gs::split_dim<1>(x, 2, 3); }, matrix);
  check(whole, [](const auto& x) { return gs::expand_dims<1>(x); }, matrix);
  check(whole, [](const auto& x) { return gs::squeeze<1>(x); }, operand<double, P<none, none, none>, P<"x", none, none>>{{5, 1, 6}});
  const auto x = gs::from_global<double, P<"x", none>>(gs::simulate<every_spec::mesh>({2, 1}), {5, 6}, whole);
  const auto split = gs::split_dim<1>(x, 2, 3);
  CHECK(split.extent(1) == 2);
  CHECK(split.extent(2) == 3);
  CHECK_THROWS_AS(gs::split_dim<1>(x, 2, 4), gs::error);
  CHECK_THROWS_AS(gs::squeeze<1>(x), gs::error);
}

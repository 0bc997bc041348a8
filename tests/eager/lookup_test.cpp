// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/eager/lookup.hpp>

#include <gshard/eager/evaluate.hpp>

#include "every_spec.hpp"

#include <doctest/doctest.h>

#include "../complaint.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <string>
#include <vector>

namespace gs = gshard;
using every_spec::check, every_spec::numbers, every_spec::operand;
using gs::none, gs::P, gs::tensor;

namespace {
const operand<double, P<none, none>, P<"x", none>, P<none, "x">> table{{4, 6}};
const std::vector<double> whole = numbers<double>(4 * 6);
double at(std::size_t r, std::size_t c) { return whole[r * 6 + c]; }
}  // namespace

TEST_CASE("gather along a dim and with batch dims, with every sharding") {
  const operand<std::int32_t, P<none>, P<"x">> ids{{5}, {3, 0, 0, 2, 1}};
  std::vector<double> rows, columns, batched;
  for (const std::int32_t i : ids.values)
    for (std::size_t c = 0; c < 6; ++c) rows.push_back(at(std::size_t(i), c));
  for (std::size_t r = 0; r < 4; ++r)
    for (const std::int32_t i : ids.values) columns.push_back(at(r, std::size_t(i)));
  check(rows, [](const auto& t, const auto& i) { return gs::gather(t, i); }, table, ids);
  check(columns, [](const auto& t, const auto& i) { return gs::gather<1>(t, i); }, table, ids);
  const operand<std::int32_t, P<none>, P<"x">> of_rows{{4}, {5, 1, 0, 3}};
  for (std::size_t r = 0; r < 4; ++r) batched.push_back(at(r, std::size_t(of_rows.values[r])));
  check(batched, [](const auto& t, const auto& i) { return gs::gather<1, 1>(t, i); }, table, of_rows);
}

TEST_CASE("scatter_add, with every sharding; ids outside of the dim are refused") {
  const operand<std::int32_t, P<none>, P<"x">> ids{{3}, {3, 0, 3}};
  const operand<double, P<none, none>, P<none, "x">> updates{{3, 6}};
  const std::vector<double> u = numbers<double>(18);
  std::vector<double> expected = whole;
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t c = 0; c < 6; ++c) expected[std::size_t(ids.values[i]) * 6 + c] += u[i * 6 + c];
  check(expected, [](const auto& x, const auto& i, const auto& v) { return gs::scatter_add(x, i, v); }, table, ids, updates);

  const auto on = gs::simulate<every_spec::mesh>({2, 1});
  const auto x = gs::from_global<double, P<"x", none>>(on, {4, 6}, whole);
  const auto beyond = gs::from_global<std::int32_t, P<none>>(on, {1}, std::vector<std::int32_t>{4});
  CHECK_THROWS_AS(gs::gather(x, beyond), gs::error);
  const auto one = gs::from_global<double, P<none, none>>(on, {1, 5}, numbers<double>(5));
  CHECK_THROWS_WITH_AS(gs::scatter_add(x, beyond, one),
                       "scatter_add: dim 1 of operand 2 has extent 5, an earlier operand has 6 there", gs::error);
}

TEST_CASE("one_hot of a number of classes that is known at run time") {
  const operand<std::int32_t, P<none>, P<"x">> ids{{4}, {2, 0, -1, 3}};
  for (const std::int64_t classes : {3, 5}) {
    std::vector<float> expected(std::size_t(4 * classes));
    for (std::size_t i = 0; i < 4; ++i)
      if (const std::int32_t id = ids.values[i]; id >= 0 && id < classes) expected[i * std::size_t(classes) + std::size_t(id)] = 1;
    check(expected, [&](const auto& i) { return gs::one_hot(i, classes); }, ids);
  }
  const auto on = gs::simulate<every_spec::mesh>({2, 1});
  const auto i = gs::from_global<std::int32_t, P<"x">>(on, {4}, ids.values);
  static_assert(std::is_same_v<decltype(gs::one_hot<double>(i, 3)), tensor<double, P<"x", none>>>);
  CHECK_THROWS_WITH_AS(gs::one_hot(i, -2), "one_hot: a new dim has extent -2", gs::error);
}

TEST_CASE("dynamic_slice and dynamic_update_slice, with every sharding; the start is a number or a scalar, and clamped") {
  for (const int start : {-1, 0, 1, 7}) {
    const std::size_t from = start < 0 ? 0 : start > 2 ? 2 : std::size_t(start);
    const std::vector<double> rows(whole.begin() + std::ptrdiff_t(from * 6), whole.begin() + std::ptrdiff_t(from * 6 + 12));
    check(rows, [&](const auto& x) { return gs::dynamic_slice<0, 2>(x, start); }, table);
    const operand<std::int32_t, P<>> scalar{{}, {start}};
    check(rows, [](const auto& x, const auto& s) { return gs::dynamic_slice<0, 2>(x, s); }, table, scalar);
    std::vector<double> updated = whole;
    const std::vector<double> u = numbers<double>(12);
    for (std::size_t i = 0; i < 12; ++i) updated[from * 6 + i] = u[i];
    check(updated, [&](const auto& x, const auto& v) { return gs::dynamic_update_slice<0>(x, v, start); }, table,
          operand<double, P<none, none>, P<none, "x">>{{2, 6}});
  }
  const auto x = gs::from_global<double, P<none, none>>(gs::on_one_device<every_spec::mesh>(), {4, 6}, whole);
  CHECK_THROWS_AS((gs::dynamic_slice<0, 5>(x, 0)), gs::error);
  CHECK_THROWS_WITH_AS((gs::dynamic_slice<0, 2>(x, std::int64_t(1) << 40)), "dynamic_slice: 1099511627776 is no int32", gs::error);
}

TEST_CASE("errors of verbs on tensors name no line of the library; those of `evaluate` that of the function's verb") {
  const auto on = gs::simulate<every_spec::mesh>({2, 1});
  const auto rows_of_table = gs::from_global<double, P<"x", none>>(on, {4, 6}, whole);
  const auto ids = gs::from_global<std::int32_t, P<none>>(on, {2}, std::vector<std::int32_t>{1, 7});
  CHECK(complaint([&] { gs::gather(rows_of_table, ids); }).find(".hpp:") == std::string::npos);
  constexpr auto rows = [](auto t, auto i) { return gs::gather(t, i); };
  const std::string line_of_rows = "lookup_test.cpp:" + std::to_string(__LINE__ - 1);
  CHECK(complaint([&] { gs::evaluate<"NM", "I">(rows, rows_of_table, ids); }).find(line_of_rows) != std::string::npos);
}

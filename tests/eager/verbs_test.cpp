// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/eager/verbs.hpp>

#include <gshard/eager/evaluate.hpp>
#include <gshard/eager/new_dims.hpp>

#include "every_spec.hpp"

#include <doctest/doctest.h>

#include "../complaint.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

namespace gs = gshard;
using every_spec::check, every_spec::numbers, every_spec::operand;
using gs::none, gs::P, gs::tensor;
using every_spec::mesh;

namespace reductions {
const every_spec::operand<double, P<none, none>, P<"x", none>, P<none, "x">, P<"y", "x">> matrix{{5, 7}};
const std::vector<double> whole = numbers<double>(5 * 7);

/// f(the elements of row r), for every row.
template <class Result>
std::vector<Result> of_rows(auto f) {
  std::vector<Result> made;
  for (std::ptrdiff_t r = 0; r < 5; ++r) made.push_back(f(whole.begin() + r * 7, whole.begin() + r * 7 + 7));
  return made;
}

TEST_CASE("sums and means, of all elements and by an equation, with every sharding") {
  const double all = std::accumulate(whole.begin(), whole.end(), 0.0);
  const auto sums = of_rows<double>([](auto from, auto to) { return std::accumulate(from, to, 0.0); });
  check(std::vector{all}, [](const auto& x) { return gs::sum(x); }, matrix);
  check(sums, [](const auto& x) { return gs::sum<"ab->a">(x); }, matrix);
  std::vector<double> means = sums;
  for (double& m : means) m /= 7;
  const auto close = [](const std::vector<double>& a, const std::vector<double>& b) {
    for (std::size_t i = 0; i < b.size(); ++i) CHECK(a.at(i) == doctest::Approx(b[i]).epsilon(1e-15));
  };
  for (const std::vector<int>& e : every_spec::meshes) {
    const auto on = gs::simulate<every_spec::mesh>(e);
    every_spec::for_each_spec(
        [&](const auto& x) {
          close(gs::to_global(gs::mean<"ab->a">(x)), means);
          close(gs::to_global(gs::mean(x)), {all / 35});
        },
        on, matrix);
  }
}

TEST_CASE("sums over sharded dims are partial sums, maxima are complete") {
  const auto on = gs::simulate<every_spec::mesh>({2, 1});
  const auto x = gs::from_global<double, P<none, "x">>(on, {5, 7}, whole);
  static_assert(decltype(gs::sum<"ab->a">(x))::is_partial && decltype(gs::mean(x))::is_partial);
  static_assert(!decltype(gs::reduce_max<"ab->a">(x))::is_partial && !decltype(gs::argmax<"ab->a">(x))::is_partial);
  CHECK(gs::reduce_max<"ab->">(x).item() == 5);
  // All reductions have both names and both forms.
  static_assert(std::is_same_v<decltype(gs::reduce_sum<"ab->a">(x)), decltype(gs::sum<"ab->a">(x))>);
  static_assert(std::is_same_v<decltype(gs::reduce_mean(x)), decltype(gs::mean(x))>);
  CHECK(gs::reduce_max(x).item() == 5);
  CHECK(gs::reduce_min(x).item() == gs::reduce_min<"ab->">(x).item());
  CHECK(gs::reduce_prod(x).item() == gs::reduce_prod<"ab->">(x).item());
  CHECK(gs::to_global(gs::reshard<P<>>(gs::reduce_sum(x))) == gs::to_global(gs::reshard<P<>>(gs::sum(x))));
}

TEST_CASE("maxima, minima, products and logsumexp, with every sharding") {
  check(of_rows<double>([](auto from, auto to) { return *std::max_element(from, to); }),
        [](const auto& x) { return gs::reduce_max<"ab->a">(x); }, matrix);
  check(of_rows<double>([](auto from, auto to) { return *std::min_element(from, to); }),
        [](const auto& x) { return gs::reduce_min<"ab->a">(x); }, matrix);
  check(of_rows<double>([](auto from, auto to) { return std::accumulate(from, to, 1.0, [](double a, double b) { return a * b; }); }),
        [](const auto& x) { return gs::reduce_prod<"ab->a">(x); }, matrix);
  const auto expected = of_rows<double>([](auto from, auto to) {
    return std::log(std::accumulate(from, to, 0.0, [](double a, double b) { return a + std::exp(b); }));
  });
  for (const std::vector<int>& e : every_spec::meshes) {
    const auto on = gs::simulate<every_spec::mesh>(e);
    every_spec::for_each_spec(
        [&](const auto& x) {
          const std::vector<double> given = gs::to_global(gs::logsumexp<"ab->a">(x));
          for (std::size_t i = 0; i < expected.size(); ++i) CHECK(given.at(i) == doctest::Approx(expected[i]).epsilon(1e-14));
        },
        on, matrix);
  }
}

TEST_CASE("argmax and argmin, with every sharding") {
  check(of_rows<std::int32_t>([](auto from, auto to) { return std::int32_t(std::max_element(from, to) - from); }),
        [](const auto& x) { return gs::argmax<"ab->a">(x); }, matrix);
  check(of_rows<std::int32_t>([](auto from, auto to) { return std::int32_t(std::min_element(from, to) - from); }),
        [](const auto& x) { return gs::argmin<"ab->a">(x); }, matrix);
}
}  // namespace reductions

TEST_CASE("softmax over the last dim, which may be sharded") {
  std::vector<double> x(5 * 7), expected(5 * 7);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = double(i * 37 % 11) / 2;
  for (std::size_t r = 0; r < 5; ++r) {
    double sum = 0;
    for (std::size_t c = 0; c < 7; ++c) sum += std::exp(x[r * 7 + c]);
    for (std::size_t c = 0; c < 7; ++c) expected[r * 7 + c] = std::exp(x[r * 7 + c]) / sum;
  }
  for (const std::vector<int>& e : std::vector<std::vector<int>>{{1, 1}, {2, 1}, {1, 3}, {2, 2}, {2, 3}}) {
    const auto on = gs::simulate<mesh>(e);
    const auto check = [&](const auto& y) {
      const std::vector<double> whole = gs::to_global(y);
      for (std::size_t i = 0; i < whole.size(); ++i)
        CHECK(whole[i] == doctest::Approx(expected[i]).epsilon(1e-14));
    };
    const auto rows = gs::softmax(gs::from_global<double, P<"x", none>>(on, {5, 7}, x));
    static_assert(std::is_same_v<decltype(rows), const tensor<double, P<"x", none>>>);
    check(rows);
    check(gs::softmax(gs::from_global<double, P<none, "x">>(on, {5, 7}, x)));
    check(gs::softmax(gs::from_global<double, P<"y", "x">>(on, {5, 7}, x)));
  }
}

TEST_CASE("layer_norm and cross_entropy, with every sharding") {
  const every_spec::operand<double, P<none, none>, P<"x", none>, P<none, "x">, P<"y", "x">> rows{{4, 6}};
  const every_spec::operand<double, P<none>, P<"x">> scale{{6}};
  const std::vector<double> x = every_spec::numbers<double>(24), g = every_spec::numbers<double>(6);
  const std::vector<std::int32_t> labels{2, -1, 5, 0};
  std::vector<double> normed(24), costs(4);
  for (std::size_t r = 0; r < 4; ++r) {
    double mean = 0, variance = 0, sum = 0;
    for (std::size_t c = 0; c < 6; ++c) mean += x[r * 6 + c] / 6;
    for (std::size_t c = 0; c < 6; ++c) variance += (x[r * 6 + c] - mean) * (x[r * 6 + c] - mean) / 6;
    for (std::size_t c = 0; c < 6; ++c) normed[r * 6 + c] = (x[r * 6 + c] - mean) / std::sqrt(variance + 1e-5) * g[c] + g[c];
    for (std::size_t c = 0; c < 6; ++c) sum += std::exp(x[r * 6 + c]);
    costs[r] = labels[r] < 0 ? 0 : std::log(sum) - x[r * 6 + std::size_t(labels[r])];
  }
  const auto close = [](const std::vector<double>& a, const std::vector<double>& b) {
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < b.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-13));
  };
  for (const std::vector<int>& e : every_spec::meshes) {
    const auto on = gs::simulate<mesh>(e);
    every_spec::for_each_spec([&](const auto& t, const auto& s) { close(gs::to_global(gs::layer_norm(t, s, s)), normed); }, on, rows,
                              scale);
    const every_spec::operand<std::int32_t, P<none>, P<"x">> targets{{4}, labels};
    every_spec::for_each_spec([&](const auto& t, const auto& l) { close(gs::to_global(gs::cross_entropy(t, l)), costs); }, on, rows,
                              targets);
  }
  const auto on = gs::on_one_device<mesh>();
  const auto t = gs::from_global<double, P<none, none>>(on, {4, 6}, x);
  CHECK_THROWS_AS(gs::cross_entropy(t, gs::from_global<std::int32_t, P<none>>(on, {4}, std::vector<std::int32_t>{0, 6, 0, 0})), gs::error);
  const auto narrow = gs::from_global<double, P<none>>(on, {5}, every_spec::numbers<double>(5));
  CHECK_THROWS_WITH_AS(gs::layer_norm(t, narrow, narrow),
                       "layer_norm: dim 0 of operand 1 has extent 5, an earlier operand has 6 there", gs::error);
}

TEST_CASE("cumsum, sort and top_k along a dim, with every sharding") {
  const every_spec::operand<double, P<none, none>, P<"x", none>, P<none, "x">, P<"y", "x">> rows{{4, 6}};
  const std::vector<double> x = every_spec::numbers<double>(24);
  std::vector<double> sums(24), from_behind(24), columns(24), in_order, best;
  std::vector<std::int32_t> ids, best_ids;
  for (std::size_t r = 0; r < 4; ++r) {
    for (std::size_t c = 0; c < 6; ++c) {
      for (std::size_t j = 0; j <= c; ++j) sums[r * 6 + c] += x[r * 6 + j];
      for (std::size_t j = c + 1; j < 6; ++j) from_behind[r * 6 + c] += x[r * 6 + j];
      for (std::size_t j = 0; j <= r; ++j) columns[r * 6 + c] += x[j * 6 + c];
    }
    std::vector<std::int32_t> order{0, 1, 2, 3, 4, 5};
    const auto by_value = [&](std::int32_t a, std::int32_t b) { return x[r * 6 + std::size_t(a)] < x[r * 6 + std::size_t(b)]; };
    std::stable_sort(order.begin(), order.end(), by_value);
    for (const std::int32_t i : order) in_order.push_back(x[r * 6 + std::size_t(i)]), ids.push_back(i);
    for (std::size_t k = 0; k < 2; ++k) best.push_back(in_order[r * 6 + 5 - k]), best_ids.push_back(ids[r * 6 + 5 - k]);
  }
  every_spec::check(sums, [](const auto& t) { return gs::cumsum(t); }, rows);
  every_spec::check(from_behind, [](const auto& t) { return gs::cumsum<1, true, true>(t); }, rows);
  every_spec::check(columns, [](const auto& t) { return gs::cumsum<0>(t); }, rows);
  every_spec::check(in_order, [](const auto& t) { return gs::sort(t).values; }, rows);
  every_spec::check(ids, [](const auto& t) { return gs::sort<1>(t).ids; }, rows);
  every_spec::check(best, [](const auto& t) { return gs::top_k<2, 1>(t).values; }, rows);
  every_spec::check(best_ids, [](const auto& t) { return gs::top_k<2>(t).ids; }, rows);
  const auto few = gs::from_global<double, P<none>>(gs::on_one_device<mesh>(), {3}, std::vector<double>{1, 2, 3});
  CHECK_THROWS_AS(gs::top_k<4>(few), gs::error);
}

namespace shapes {
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

TEST_CASE("a reshape whose dims do not fit is refused, also if another dim is empty; padding that removes all elements leaves none") {
  const auto on = gs::simulate<mesh>({2, 1});
  const auto empty = gs::from_global<float, P<"x", none>>(on, {3, 0}, std::vector<float>());
  CHECK(complaint([&] { gs::squeeze<0>(empty); }).starts_with("squeeze: dim 0 has extent 3, not 1"));
  CHECK_THROWS_AS(gs::split_dim<0>(empty, 2, 7), gs::error);
  CHECK(gs::split_dim<1>(empty, 0, 7).extent(2) == 7);
  const auto t = gs::from_global<float, P<"x", none>>(on, {4, 3}, std::vector<float>(12));
  CHECK(gs::pad<0, -3, -1>(t).extent(0) == 0);
  CHECK(gs::pad<0, -3, -2>(t).extent(0) == 0);
  CHECK(gs::pad<1, 0, 0, 1>(empty).extent(1) == 0);
}
}  // namespace shapes

namespace lookups {
const operand<double, P<none, none>, P<"x", none>, P<none, "x">> table{{4, 6}};
const std::vector<double> whole = numbers<double>(4 * 6);
double at(std::size_t r, std::size_t c) { return whole[r * 6 + c]; }

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
  const std::string line_of_rows = "verbs_test.cpp:" + std::to_string(__LINE__ - 1);
  CHECK(complaint([&] { gs::evaluate<"NM", "I">(rows, rows_of_table, ids); }).find(line_of_rows) != std::string::npos);
}
}  // namespace lookups

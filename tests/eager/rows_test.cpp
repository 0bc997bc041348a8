// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/eager/rows.hpp>

#include "every_spec.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace gs = gshard;
using gs::none, gs::P, gs::tensor;
using mesh = gs::mesh<gs::axis<"x">, gs::axis<"y">>;

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

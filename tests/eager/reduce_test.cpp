// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/eager/reduce.hpp>

#include "every_spec.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <type_traits>
#include <vector>

namespace gs = gshard;
using every_spec::check, every_spec::numbers;
using gs::none, gs::P;

namespace {
const every_spec::operand<double, P<none, none>, P<"x", none>, P<none, "x">, P<"y", "x">> matrix{{5, 7}};
const std::vector<double> whole = numbers<double>(5 * 7);

/// f(the elements of row r), for every row.
template <class Result>
std::vector<Result> of_rows(auto f) {
  std::vector<Result> made;
  for (std::ptrdiff_t r = 0; r < 5; ++r) made.push_back(f(whole.begin() + r * 7, whole.begin() + r * 7 + 7));
  return made;
}
}  // namespace

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

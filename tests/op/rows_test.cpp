// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/op/rows.hpp>

#include <doctest/doctest.h>

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

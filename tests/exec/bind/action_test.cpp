// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/bind/action.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace gs = gshard;
using gs::detail::action;

namespace {

action add_to(std::vector<int>& y, const std::vector<int>& x) {
  return action::elementwise(std::int64_t(y.size()), [&](const gs::run_context&, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) y[std::size_t(i)] += x[std::size_t(i)];
  });
}

}  // namespace

TEST_CASE("elementwise actions together do what they do one after the other") {
  for (const std::size_t n : {std::size_t(0), std::size_t(1), std::size_t(4096), std::size_t(10000)}) {
    CAPTURE(n);
    std::vector<int> x(n), y(n, 1), z(n, 2);
    std::iota(x.begin(), x.end(), 0);
    const action all = gs::detail::together({add_to(y, x), add_to(z, y), add_to(z, x)}, 0);
    CHECK(bool(all));
    all({});
    for (std::size_t i = 0; i < n; ++i) {
      CHECK(y[i] == 1 + int(i));
      CHECK(z[i] == 3 + 2 * int(i));
    }
  }
}

TEST_CASE("results of different sizes are made in as many pieces, the same piece of all at a time") {
  for (const std::int64_t pieces : {1, 2, 5}) {
    CAPTURE(pieces);
    std::vector<std::int64_t> order;
    const auto note = [&](std::int64_t elements) {
      return action::elementwise(elements, [&order, elements, pieces](const gs::run_context&, std::int64_t begin, std::int64_t end) {
        CHECK(end - begin == elements / pieces);
        order.push_back(begin / (elements / pieces));
      });
    };
    gs::detail::together({note(10), note(30), note(20)}, pieces)({});
    REQUIRE(order.size() == std::size_t(3 * pieces));
    for (std::size_t i = 0; i < order.size(); ++i) CHECK(order[i] == std::int64_t(i) / 3);
  }
}

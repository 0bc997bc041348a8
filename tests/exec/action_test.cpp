// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/action.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace gs = gshard;
using gs::detail::action, gs::detail::piece_done;

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
    const action all = gs::detail::together(add_to(y, x), {add_to(z, y), add_to(z, x)});
    CHECK(bool(all));
    all({});
    for (std::size_t i = 0; i < n; ++i) {
      CHECK(y[i] == 1 + int(i));
      CHECK(z[i] == 3 + 2 * int(i));
    }
  }
}

TEST_CASE("what goes on with a product is done when a piece of it is") {
  std::vector<int> x(100, 0), y(100, 0);
  const action product = action::producing([&](const gs::run_context&, const piece_done& done) {
    for (const std::int64_t begin : {60, 0, 30}) {  // in any order
      const std::int64_t end = begin == 60 ? 100 : begin + 30;
      for (std::int64_t i = begin; i < end; ++i) x[std::size_t(i)] = int(i);
      done(begin, end);
    }
  });
  product({});
  CHECK(y[70] == 0);
  gs::detail::together(product, {add_to(y, x)})({});
  for (std::size_t i = 0; i < 100; ++i) CHECK(y[i] == int(i));
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/testing/check_shardings.hpp>

#include <gshard/core/trace/broadcast.hpp>
#include <gshard/ops/user/custom.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <tuple>

namespace gs = gshard;

namespace {

// y[a] = sum over b of x[a, b]^2. `sums`, `whole` and the factor of its gradient are parameters.
template <char Sums, char Whole, int Factor = 2>
struct squares {
  static constexpr char summed[1] = {Sums}, unsharded[1] = {Whole};
  static constexpr std::string_view name = "squares", rule = "AB->A";
  static constexpr std::string_view sums{summed, Sums == ' ' ? 0 : 1}, whole{unsharded, Whole == ' ' ? 0 : 1};

  template <class T>
  static void run(gs::local_shard<const T> x, gs::local_shard<T> y) {
    for (std::int64_t a = 0; a < y.extent(0); ++a) {
      y.data[a] = 0;
      for (std::int64_t b = 0; b < x.extent(1); ++b) y.data[a] += x.data[a * x.extent(1) + b] * x.data[a * x.extent(1) + b];
    }
  }
  static constexpr gs::symbol gradient(gs::symbol x, gs::symbol, gs::symbol dy) {
    return Factor * (x * gs::broadcast<"A,AB->AB">(dy, x));
  }
};
// y[a] = the largest x[a, b]: results of shards of B do not add up, although `sums` claims it.
struct wrongly_summed {
  static constexpr std::string_view name = "largest", rule = "AB->A", sums = "B";
  template <class T>
  static void run(gs::local_shard<const T> x, gs::local_shard<T> y) {
    for (std::int64_t a = 0; a < y.extent(0); ++a) {
      y.data[a] = -100;
      for (std::int64_t b = 0; b < x.extent(1); ++b) y.data[a] = std::max(y.data[a], x.data[a * x.extent(1) + b]);
    }
  }
};

template <class Operation>
std::string check(bool gradients = true) {
  const auto model = [](auto&, auto x) { return gs::custom<Operation>(x); };
  return gs::check_shardings(model, {"AB"}, {.sizes = {{{'A', 4}, {'B', 6}}, {{'A', 5}, {'B', 3}}}, .gradients = gradients});
}

}  // namespace

TEST_CASE("check_shardings: nothing is wrong with right operations") {
  CHECK(check<squares<'B', ' '>>() == "");
  CHECK(check<squares<' ', 'B'>>() == "");
  CHECK(check<squares<'B', 'A'>>() == "");
}

TEST_CASE("check_shardings: sums that do not add up differ, with mesh and shardings") {
  const std::string wrong = check<wrongly_summed>(false);
  CHECK(wrong.find("mesh 2, dims A=4 B=6, shardings [-,x]") != std::string::npos);
  CHECK(wrong.find("runs differ") != std::string::npos);
}

TEST_CASE("check_shardings: a wrong gradient is found by central differences") {
  const std::string wrong = check<squares<'B', ' ', 3>>();
  CHECK(wrong.find("the gradient of input 0 along a direction is ") == 0);
}

TEST_CASE("check_shardings: a wrong gradient of large results is found") {
  const auto model = [](auto&, auto x) { return gs::custom<squares<'B', ' ', 3>>(x); };
  const std::string wrong = gs::check_shardings(model, {"AB"}, {.sizes = {{{'A', 2}, {'B', 60}}}});
  CHECK(wrong.find("the gradient of input 0 along a direction is ") == 0);
}

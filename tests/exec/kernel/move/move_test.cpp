// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/kernel/move/move.hpp>

#include "../windows.hpp"

#include <numeric>

using namespace test;
using window_cases::window_case;

TEST_CASE_TEMPLATE("window_move: random windows, shards and regions", T, float, double, std::int32_t) {
  for (std::uint32_t seed = 0; seed < 600; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    const window_case c(gen, true, 1);
    std::vector<T> x(std::size_t(c.whole_in()));
    std::iota(x.begin(), x.end(), T(1));
    const std::vector<T> in = c.region(x);
    std::vector<T> filled(std::size_t(c.out_elements()), T(-5)), into(filled);
    const ks::window_move<T> move(c.in, c.out, c.windows);
    move.run(in.data(), filled.data(), T(-7));
    move.run_into(in.data(), into.data());
    bool right = true;
    for_each_index(c.out.rank, c.out.extent, [&](const ks::index_array& i, std::int64_t linear) {
      const std::int64_t at = c.read(i, {});
      right = right && filled[std::size_t(linear)] == (at < 0 ? T(-7) : x[std::size_t(at)]);
      right = right && into[std::size_t(linear)] == (at < 0 ? T(-5) : x[std::size_t(at)]);
    });
    CHECK(right);
  }
}

TEST_CASE("window_move: operands side by side") {
  const std::vector<float> a{1, 2, 3, 4}, b{5, 6};
  std::vector<float> y(6);
  const ks::placement at = ks::whole(2, {2, 3});
  ks::window_move<float>(ks::whole(2, {2, 2}), at, {}).run_into(a.data(), y.data());
  ks::window_move<float>(ks::whole(2, {2, 1}), at, {gshard::bound_window{}, gshard::bound_window{.low = -2}}).run_into(b.data(), y.data());
  CHECK(y == std::vector<float>{1, 2, 5, 3, 4, 6});
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/kernel/reduce.hpp>

#include "einsum_reference.hpp"
#include "support.hpp"

#include <algorithm>
#include <limits>

using namespace einsum_reference;

TEST_CASE("reduce_max: random dims") {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    const std::string a = std::string("abcd").substr(0, static_cast<std::size_t>(test::pick(gen, 0, 4)));
    std::string out;
    extents sizes;
    for (char c : a) {
      sizes[c] = test::pick(gen, 0, 15) == 0 ? 0 : test::pick(gen, 1, a.size() < 3 ? 40 : 6);
      if (test::pick(gen, 0, 1) == 0) out += c;
    }
    std::shuffle(out.begin(), out.end(), gen);
    const auto x = test::random_values<float>(count(a, sizes), gen);
    std::vector<float> y(static_cast<std::size_t>(count(out, sizes)), 7);
    std::vector<float> expected(y.size(), -std::numeric_limits<float>::infinity());
    for_each_index(sizes, [&](const extents& index) {
      float& to = expected[position(out, sizes, index)];
      to = std::max(to, x[position(a, sizes, index)]);
    });
    ks::reduce_max<float>(operand(a, sizes), operand(out, sizes)).run(x.data(), y.data());
    CHECK(y == expected);
  }
}

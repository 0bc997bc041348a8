// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/reduce/argmax_kernel.hpp>
#include <gshard/ops/reduce/reduce_kernel.hpp>

#include "../../exec/kernel/einsum_reference.hpp"
#include "../../exec/kernel/support.hpp"

#include <algorithm>
#include <limits>

using namespace einsum_reference;
using test::pick;

namespace {
constexpr std::int32_t none = std::numeric_limits<std::int32_t>::max();
}

TEST_CASE_TEMPLATE("first_equal: random dims, ties and NaNs", T, float, double, std::int32_t) {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    const std::string a = std::string("abcd").substr(0, std::size_t(pick(gen, 1, 4)));
    const char along = a[std::size_t(pick(gen, 0, std::int64_t(a.size()) - 1))];
    const std::int64_t first = pick(gen, 0, 100);
    std::string out;
    extents sizes;
    for (char c : a) {
      sizes[c] = pick(gen, 0, 20) == 0 ? 0 : pick(gen, 1, a.size() < 3 ? 40 : 6);
      if (c != along && pick(gen, 0, 1) == 0) out += c;
    }
    std::shuffle(out.begin(), out.end(), gen);
    std::vector<T> x;
    for (std::int64_t i = 0; i < count(a, sizes); ++i) {
      x.push_back(T(pick(gen, -3, 3)));
      if (std::numeric_limits<T>::has_quiet_NaN && pick(gen, 0, 100) == 0) x.back() = std::numeric_limits<T>::quiet_NaN();
    }
    std::vector<T> m(std::size_t(count(out, sizes)));
    ks::reduction_kernel<T>(gshard::reduction::max, operand(a, sizes), operand(out, sizes)).run(x.data(), m.data());
    for (T& v : m)
      if (pick(gen, 0, 9) == 0) v = T(5);  // the largest is in another shard
    std::vector<std::int32_t> found(m.size(), 7), expected(m.size(), none);
    for_each_index(sizes, [&](const extents& index) {
      const T v = x[position(a, sizes, index)], top = m[position(out, sizes, index)];
      std::int32_t& to = expected[position(out, sizes, index)];
      if (v == top || (v != v && top != top)) to = std::min(to, std::int32_t(first + index.at(along)));
    });
    const int counted = operand(std::string(1, along), sizes).factor[0];
    ks::first_equal<T>(operand(a, sizes), operand(out, sizes), counted, first).run(x.data(), m.data(), found.data());
    CHECK(found == expected);
  }
}

TEST_CASE("first_equal: an index along a factor that x lacks") {
  const extents sizes{{'a', 2}, {'b', 3}};
  CHECK_THROWS_WITH_AS(ks::first_equal<float>(operand("a", sizes), operand("", sizes), 1, 0),
                       "first_equal [a:2] -> []: there is no 'b' to count along", gshard::error);
}

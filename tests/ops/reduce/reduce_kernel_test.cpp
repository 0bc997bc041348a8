// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/reduce/reduce_kernel.hpp>

#include "../../exec/kernel/einsum_reference.hpp"
#include "../../exec/kernel/support.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

using namespace einsum_reference;
using gshard::reduction;

namespace {

template <class T>
double combine(reduction what, double a, T b) {
  switch (what) {
    case reduction::sum: return a + double(b);
    case reduction::max: return std::max(a, double(b));
    case reduction::min: return std::min(a, double(b));
    case reduction::prod: return a * double(b);
  }
  return 0;
}
template <class T>
double over_nothing(reduction what) {
  using limits = std::numeric_limits<T>;
  if (what == reduction::sum || what == reduction::prod) return what == reduction::prod;
  if (limits::has_infinity) return what == reduction::max ? -limits::infinity() : limits::infinity();
  return double(what == reduction::max ? limits::lowest() : limits::max());
}

template <class T>
void check(reduction what, const std::string& a, const std::string& out, const extents& sizes, std::mt19937& gen) {
  std::vector<T> x;
  for (double v : test::random_values(count(a, sizes), gen)) {
    if (std::is_integral_v<T>) v = what == reduction::prod ? (v > 0 ? 1 : -1) : std::round(1000 * v);
    else if (what == reduction::prod) v = v > 0 ? 1 + v / 100 : -1 + v / 100;
    x.push_back(T(v));
  }
  std::vector<T> y(std::size_t(count(out, sizes)), 7);
  std::vector<double> expected(y.size(), over_nothing<T>(what));
  for_each_index(sizes, [&](const extents& index) {
    double& to = expected[position(out, sizes, index)];
    to = combine(what, to, x[position(a, sizes, index)]);
  });
  ks::reduction_kernel<T>(what, operand(a, sizes), operand(out, sizes)).run(x.data(), y.data());
  bool right = true;
  for (std::size_t i = 0; i < y.size(); ++i)
    right = right && (double(y[i]) == expected[i] || std::abs(double(y[i]) - expected[i]) <= 1e-4 * (1 + std::abs(expected[i])));
  CHECK(right);
}

}  // namespace

TEST_CASE_TEMPLATE("reduction_kernel: random dims", T, float, double, std::int32_t) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    const std::string a = std::string("abcd").substr(0, std::size_t(test::pick(gen, 0, 4)));
    std::string out;
    extents sizes;
    for (char c : a) {
      sizes[c] = test::pick(gen, 0, 15) == 0 ? 0 : test::pick(gen, 1, a.size() < 3 ? 40 : 6);
      if (test::pick(gen, 0, 1) == 0) out += c;
    }
    std::shuffle(out.begin(), out.end(), gen);
    for (const reduction what : {reduction::sum, reduction::max, reduction::min, reduction::prod}) {
      CAPTURE(int(what));
      check<T>(what, a, out, sizes, gen);
    }
  }
}

TEST_CASE_TEMPLATE("reduction_kernel: one NaN makes the result NaN, wherever it is", T, float, double) {
  const extents sizes{{'a', 2}, {'b', 83}};
  for (const reduction what : {reduction::sum, reduction::max, reduction::min, reduction::prod})
    for (std::size_t at = 0; at < 83; ++at) {
      std::vector<T> x(166, T(1)), y(2);
      x[at] = std::numeric_limits<T>::quiet_NaN();
      ks::reduction_kernel<T>(what, operand("ab", sizes), operand("a", sizes)).run(x.data(), y.data());
      CHECK((std::isnan(y[0]) && !std::isnan(y[1])));
    }
}

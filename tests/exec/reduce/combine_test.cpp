// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/reduce/combine.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>

namespace {

using gshard::reduction;

template <class T>
constexpr T combine(reduction what, T a, T b) {
  return gshard::detail::with_operation<T>(what, [=](auto op, T) { return op(a, b); });
}
template <class T>
constexpr T identity(reduction what) {
  return gshard::detail::with_operation<T>(what, [](auto, auto start) { return T(start); });
}

static_assert(combine(reduction::sum, 2, 5) == 7 && combine(reduction::prod, 2, 5) == 10);
static_assert(combine(reduction::max, 2, 5) == 5 && combine(reduction::max, 5, 2) == 5);
static_assert(combine(reduction::min, 2, 5) == 2 && combine(reduction::min, 5, 2) == 2);
static_assert(identity<std::int32_t>(reduction::max) == std::numeric_limits<std::int32_t>::lowest());
static_assert(identity<std::int32_t>(reduction::min) == std::numeric_limits<std::int32_t>::max());

}  // namespace

TEST_CASE_TEMPLATE("combine: the identity changes nothing", T, float, double, std::int32_t) {
  for (const reduction what : {reduction::sum, reduction::max, reduction::min, reduction::prod})
    for (const T x : {std::numeric_limits<T>::lowest(), T(-3), T(0), T(5), std::numeric_limits<T>::max()}) {
      CHECK(combine(what, identity<T>(what), x) == x);
      CHECK(combine(what, x, identity<T>(what)) == x);
    }
}

TEST_CASE_TEMPLATE("combine: no reduction loses a NaN", T, float, double) {
  const T nan = std::numeric_limits<T>::quiet_NaN(), infinity = std::numeric_limits<T>::infinity();
  for (const reduction what : {reduction::sum, reduction::max, reduction::min, reduction::prod})
    for (const T x : {-infinity, T(0), infinity, nan}) {
      CHECK(std::isnan(combine(what, nan, x)));
      CHECK(std::isnan(combine(what, x, nan)));
    }
}

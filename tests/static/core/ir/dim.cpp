// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/ir/dim.hpp>

#include <algorithm>
#include <array>
#include <cstdint>

namespace gs = gshard;
using gs::dim;

namespace {

constexpr gs::dims sizes{{'E', 16}, {'M', 512}};
static_assert(sizes.find('E') == 16 && sizes.find('M') == 512 && sizes.find('e') == -1 && sizes.count == 2);
static_assert(gs::dims{}.find('A') == -1 && !gs::dims{}.has('A'));
// A letter with extent -1 counts as given.
static_assert(gs::dims{{'E', -1}}.has('E') && gs::dims{{'E', -1}, {'E', 2}}.twice == 'E' && !gs::dims{{'E', -1}}.twice);
// The last entry wins.
static_assert(gs::dims{{'E', 16}, {'E', 8}}.find('E') == 8 && gs::dims{{'E', 16}, {'E', 8}}.count == 1);
// Every letter has an entry.
static_assert([] {
  gs::dims all;
  for (char c = 'A'; c <= 'Z'; ++c) all.set(c, c);
  for (char c = 'a'; c <= 'z'; ++c) all.set(c, c);
  for (char c = 'A'; c <= 'Z'; ++c)
    if (all.find(c) != c || all.find(char(c - 'A' + 'a')) != c - 'A' + 'a') return false;
  return all.count == gs::dims::most;
}());

constexpr std::array<std::int64_t, 2> before{24, 5};
constexpr dim product{.what = dim::kind::product, .first = 0, .second = 1};
constexpr dim fixed{.what = dim::kind::fixed, .number = 7};
static_assert(gs::derived_extent(product, before) == 120 && gs::derived_extent(fixed, before) == 7);
static_assert(gs::derived_extent(dim{}, before) == -1);

// The capacity ceil(number / divisor * S / E), at least 1: the smallest whole number that is large enough.
constexpr bool is_ceiling(std::int64_t number, std::int64_t divisor, std::int64_t s, std::int64_t e) {
  const dim d{.what = dim::kind::ratio, .first = 0, .second = 1, .number = number, .divisor = divisor};
  const std::int64_t c = gs::derived_extent(d, std::array{s, e});
  const bool enough = c * divisor * e >= number * s, tight = c == 1 || (c - 1) * divisor * e < number * s;
  return c >= 1 && enough && tight;
}
static_assert([] {
  for (std::int64_t s = 0; s <= 12; ++s)
    for (std::int64_t e = 1; e <= 7; ++e)
      for (std::int64_t number = 0; number <= 6; ++number)
        for (std::int64_t divisor : {1, 2, 4})
          if (!is_ceiling(number, divisor, s, e)) return false;
  return true;
}());
// The paper's buffers: C = 2S/E with S = 1024 is 16, 4 and 1 for 128, 512 and 2048 experts.
constexpr std::int64_t places(std::int64_t experts) {
  return gs::derived_extent({.what = dim::kind::ratio, .first = 0, .second = 1, .number = 2},
                            std::array<std::int64_t, 2>{1024, experts});
}
static_assert(places(128) == 16 && places(512) == 4 && places(2048) == 1 && places(4096) == 1);
// Capacity factors: decimal numbers are exact, even if arithmetic misses them by a bit. Others are as close as 2^20 allows.
constexpr bool is_fraction(double x, std::int64_t number, std::int64_t divisor) {
  return gs::nearest_fraction(x) == gs::fraction{number, divisor};
}
static_assert(is_fraction(2, 2, 1) && is_fraction(1.25, 5, 4) && is_fraction(1.8, 9, 5) && is_fraction(0.6 * 3, 9, 5));
static_assert(is_fraction(1.1, 11, 10) && is_fraction(0.1 + 0.2, 3, 10) && is_fraction(1.0 / 3, 1, 3) && is_fraction(16, 16, 1));
static_assert(is_fraction(0, 0, 1) && is_fraction(1e-9, 0, 1) && is_fraction(1e12, 1'000'000'000'000, 1));
static_assert([] {
  for (std::int64_t divisor = 1; divisor <= 200; ++divisor)
    for (std::int64_t number = 0; number <= 3 * divisor; number += 7) {
      const gs::fraction f = gs::nearest_fraction(double(number) / double(divisor));
      if (f.number * divisor != number * f.divisor) return false;
    }
  for (const double x : {3.141592653589793, 2.718281828459045, 0.7071067811865476}) {
    const gs::fraction f = gs::nearest_fraction(x);
    const double error = x - double(f.number) / double(f.divisor);
    if (error > 1e-11 || error < -1e-11) return false;
  }
  return true;
}());
// A minimum and a multiple: the smallest multiple that is at least both.
static_assert([] {
  for (std::int64_t of = 0; of <= 9; ++of)
    for (std::int64_t least = 0; least <= 9; ++least)
      for (std::int64_t multiple = 1; multiple <= 8; ++multiple) {
        const std::array<std::int64_t, 1> first{of};
        const std::int64_t c = gs::derived_extent({.what = dim::kind::rounded, .number = least, .divisor = multiple}, first);
        if (c % multiple != 0 || c < of || c < least || (c - multiple >= of && c - multiple >= least)) return false;
      }
  return true;
}());
// No experts, no division by zero.
static_assert(places(0) == 1);

}  // namespace

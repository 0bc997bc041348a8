// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/ir/sharding.hpp>

#include <array>
#include <cstdint>
#include <initializer_list>

namespace gs = gshard;
using gs::sharding;

namespace {

constexpr sharding cut(int rank, int d0, int a0, int d1 = -1, int a1 = -1) {
  sharding s = sharding::replicated(rank);
  s[d0].push_back(a0);
  if (d1 >= 0) s[d1].push_back(a1);
  return s;
}

static_assert(sharding::replicated(3).used() == 0 && !sharding::replicated(3).is_open(0));
static_assert(sharding::unconstrained(3).open == 0b111 && sharding::unconstrained(0).open == 0);
static_assert(sharding::unconstrained(gs::max_rank).open == 0xff);

static_assert(cut(3, 0, 2, 2, 1).used() == 0b110);
static_assert(cut(3, 0, 2, 2, 1).dim_of(2) == 0 && cut(3, 0, 2, 2, 1).dim_of(1) == 2 &&
              cut(3, 0, 2, 2, 1).dim_of(0) == -1);

// The order of axes matters: blocks of (x, y) differ from blocks of (y, x).
static_assert(!cut(2, 0, 0, 0, 1).same_layout(cut(2, 0, 1, 0, 0)));
static_assert(cut(2, 0, 0, 0, 1).used() == cut(2, 0, 1, 0, 0).used());

// Open dims and partial sums: the first do not move data, the second do.
static_assert(sharding::replicated(2).same_layout(sharding::unconstrained(2)));
static_assert(sharding::replicated(2) != sharding::unconstrained(2));
static_assert(!sharding::replicated(2).same_layout(sharding::replicated(3)));
static_assert([] {
  sharding s = sharding::replicated(2);
  s.partial = 0b10;
  return !s.same_layout(sharding::replicated(2)) && s.is_partial(1) && !s.is_partial(0) && s.used() == 0 &&
         s.dim_of(1) == -1;
}());

// A shard over (x, y) is a part of the shard over x, for any extent. If the devices divide the extent, it is the shard of a single axis of
// all devices.
constexpr bool nests(int x, int y) {
  const std::array<int, 2> grid{x, y}, line{x * y, 1};
  gs::short_list outer, both;
  outer.push_back(0);
  both.push_back(0);
  both.push_back(1);
  for (std::int64_t n = 0; n < 60; ++n) {
    std::int64_t next = 0;
    for (int d = 0; d < x * y; ++d) {
      const std::array<int, 2> at{d / y, d % y}, alone{d, 0};
      const gs::interval part = gs::block_of(n, both, grid, at);
      if (part.begin != next || !(part.common(gs::block_of(n, outer, grid, at)) == part)) return false;
      if (n % (x * y) == 0 && !(part == gs::block_of(n, outer, line, alone))) return false;
      next = part.end;
    }
    if (next != n) return false;
  }
  return true;
}
static_assert(nests(2, 2) && nests(3, 2) && nests(2, 5) && nests(1, 4) && nests(4, 1));
constexpr std::int64_t last_of_13(std::initializer_list<int> axes, std::array<int, 2> grid, std::array<int, 2> at) {
  gs::short_list list;
  for (const int a : axes) list.push_back(a);
  return gs::block_of(13, list, grid, at).size();
}
static_assert(last_of_13({0}, {4, 1}, {3, 0}) == 1 && last_of_13({0, 1}, {2, 2}, {1, 1}) == 3);

}  // namespace

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ir/sharding.hpp>

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

// Major to minor matters: blocks of (x, y) are not those of (y, x).
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

}  // namespace

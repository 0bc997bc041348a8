// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A tensor of a loop body is used after the loop.
// expect: gshard: a tensor of a loop's body is used outside of the loop: let the loop carry it
// expect: "map"
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P, gs::symbol;

inline constexpr auto model = [](auto&, auto x, auto turns) {
  symbol last = x;
  const symbol y = gs::repeat(turns, [&](symbol s) { return last = s + s; }, x);
#if defined(MUST_FAIL)
  return y + last;
#else
  return y + y;
#endif
};
static_assert(gs::program<model, gs::mesh<gs::axis<"data">>, in<"B">, in<"">>::plan.collectives() == 0);

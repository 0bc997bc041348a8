// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The result of a region differs between devices, but its spec does not name the axis.
// expect: gshard: the result of a per_shard region differs between the devices along its axis, which its spec does not name
// expect: over_axis<.*"x"
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

#if defined(MUST_FAIL)
using layout = P<none, none>;
#else
using layout = P<"x", none>;
#endif

inline constexpr auto model = [](auto&, auto x) {
  return gs::per_shard<"x", layout>([](auto t) { return gs::shift<"x">(t, 1); }, x);
};
using compiled = gs::program<model, gs::mesh<gs::axis<"x">>, in<"BM", P<"x", none>>>;
static_assert(compiled::plan.count(gs::op::collective_permute) == 1 && compiled::plan.collectives() == 1);

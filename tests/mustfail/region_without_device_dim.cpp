// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The result of a region is the same on all devices, but its spec shards it over the region's axis.
// expect: gshard: a tensor lacks the dim that counts the devices along an axis: verbs on shards, and specs with that axis, need it
// expect: over_axis<.*"x"
// expect: in_operation<.*"per_shard"
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

#if defined(MUST_FAIL)
using layout = P<"x", none>;
#else
using layout = P<none, none>;
#endif

inline constexpr auto model = [](auto&, auto x) {
  return gs::per_shard<"x", layout>([](auto t) { return gs::all_reduce<"x">(t); }, x);
};
using compiled = gs::program<model, gs::mesh<gs::axis<"x">>, in<"BM", P<"x", none>>>;
static_assert(compiled::plan.count(gs::op::all_reduce) == 1 && compiled::plan.collectives() == 1);

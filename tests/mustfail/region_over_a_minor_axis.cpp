// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A region is entered over the second axis of a dim.
// expect: gshard: the axis of a per_shard region shards a dim after another axis: enter the regions of a dim's axes in their order
// expect: over_axis<.*"y"
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::axes, gs::in, gs::P;

#if defined(MUST_FAIL)
using layout = P<axes<"x", "y">>;
#else
using layout = P<axes<"y", "x">>;
#endif

inline constexpr auto model = [](auto&, auto x) { return gs::per_shard<"y", layout>([](auto t) { return t; }, x); };
using compiled = gs::program<model, gs::mesh<gs::axis<"x">, gs::axis<"y">>, in<"B", layout>>;
static_assert(compiled::plan.collectives() == 0);

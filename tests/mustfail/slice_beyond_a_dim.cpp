// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A slice of a slice that has fewer elements.
// expect: gshard: invalid range, count, window or priority: reversed, out of bounds, or given twice
// expect: in_operation<.*"slice"
// expect: range_given<.*"stop, extent of x".*, 5, 4>
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

#if defined(MUST_FAIL)
constexpr int stop = 5;
#else
constexpr int stop = 4;
#endif
inline constexpr auto model = [](auto&, auto x) { return gs::slice(gs::slice(x, 0, 0, 4), 0, 0, stop); };
using compiled = gs::program<model, gs::mesh<gs::axis<"x">>, in<"AB", P<"x", none>>>;
static_assert(compiled::plan.collectives() > 0);

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// top_k with zero elements.
// expect: gshard: invalid range, count, window or priority: reversed, out of bounds, or given twice
// expect: in_operation<.*"top_k"
// expect: range_given<.*"k".*, 0>
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

#if defined(MUST_FAIL)
constexpr int k = 0;
#else
constexpr int k = 1;
#endif
inline constexpr auto model = [](auto&, auto x) { return gs::top_k(x, k).values; };
using compiled = gs::program<model, gs::mesh<gs::axis<"x">>, in<"AB", P<"x", none>>>;
static_assert(compiled::plan.collectives() == 0);

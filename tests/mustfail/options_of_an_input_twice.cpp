// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An input has two element types.
// expect: gshard: an input has at most one spec, one element type and one memory order
#include <gshard/plan.hpp>

namespace gs = gshard;

#if defined(MUST_FAIL)
using rows = gs::in<"B@data,M", float, double>;
#else
using rows = gs::in<"B@data,M", double>;
#endif
inline constexpr auto model = [](auto&, auto x) { return gs::relu(x); };
static_assert(gs::program<model, gs::mesh<gs::axis<"data">>, rows>::plan.collectives() == 0);

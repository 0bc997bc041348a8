// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A dim is given two extents.
// expect: gshard: invalid range, count, window or priority: reversed, out of bounds, or given twice
// expect: in_operation<.*"extent"
// expect: range_given<.*"B"
#include <gshard/plan.hpp>

namespace gs = gshard;

#if defined(MUST_FAIL)
using again = gs::extent<'B', 8>;
#else
using again = gs::extent<'B', 4>;
#endif

inline constexpr auto model = [](auto&, auto x) { return gs::relu(x); };
static_assert(gs::program<model, gs::mesh<gs::axis<"data">>, gs::in<"BM">, gs::extent<'B', 4>, again>::plan.collectives() == 0);

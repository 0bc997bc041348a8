// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A dim has a negative extent.
// expect: gshard: invalid range, count, window or priority
// expect: in_operation<.*"extent"
// expect: range_given<.*"A".*, -1>
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::extent, gs::in;

#if defined(MUST_FAIL)
constexpr int rows = -1;
#else
constexpr int rows = 0;
#endif

inline constexpr auto model = [](auto&, auto x) { return gs::relu(x); };
static_assert(gs::program<model, gs::mesh<gs::axis<"x">>, in<"AB">, extent<'A', rows>>::plan.collectives() == 0);

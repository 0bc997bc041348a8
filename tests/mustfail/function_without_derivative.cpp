// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The function of map calls a function of plain numbers.
// expect: gshard: map differentiates its function: call gshard::exp, log, tanh
#include <gshard/plan.hpp>

#include <cmath>

namespace gs = gshard;
using gs::in, gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"data">>;

#if defined(MUST_FAIL)
inline constexpr auto activation = [](auto v) { return 2 * std::tanh(v); };
#else
inline constexpr auto activation = [](auto v) { return 2 * gs::tanh(v); };
#endif
inline constexpr auto model = [](auto&, auto x) { return gs::map<activation>(x); };
static_assert(gs::program<model, mesh, in<"AB">>::plan.count(gs::op::map) == 1);

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The function of map returns no number.
// expect: gshard: the function of map returns a number
// expect: actual_type<const char ?.>
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"data">>;

#if defined(MUST_FAIL)
inline constexpr auto sign = [](auto v) { return v < 0 ? "-" : "+"; };
#else
inline constexpr auto sign = [](auto v) { return v < 0 ? -1 : 1; };
#endif
inline constexpr auto model = [](auto&, auto x) { return gs::map<sign>(x); };
static_assert(gs::program<model, mesh, in<"AB">>::plan.count(gs::op::map) == 1);

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The output of a broadcast lacks an index of its operand.
// expect: gshard: broadcast keeps every index of its first operand
// expect: in_equation<.*"BQ,QK->QK"
// expect: index_letter<.*"B"
// expect: dim_number<0>
// expect: at_line<19>
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in;

#if defined(MUST_FAIL)
#define EQUATION "BQ,QK->QK"
#else
#define EQUATION "BQ,QK->BQK"
#endif

inline constexpr auto spread = [](auto&, auto x, auto y) { return gs::broadcast<EQUATION>(x, y); };
static_assert(gs::program<spread, gs::mesh<gs::axis<"data">>, in<"GS">, in<"SM">>::plan.collectives() == 0);

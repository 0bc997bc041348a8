// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Two operands with different shardings in a strict program.
// expect: gshard: an operand would be resharded implicitly \(strict\)
// expect: in_operation<.*"map"
// expect: over_axis<.*"x"
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

#if defined(MUST_FAIL)
inline constexpr auto model = [](auto&, auto x, auto y) { return x + y; };
#else
inline constexpr auto model = [](auto&, auto x, auto y) { return x + gs::annotate<P<"x", none>>(y); };
#endif
using compiled = gs::program<model, gs::mesh<gs::axis<"x">>, in<"AB", P<"x", none>>, in<"AB", P<none, "x">>, gs::strict>;
static_assert(compiled::plan.count(gs::op::all_to_all) == 1);

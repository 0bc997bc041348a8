// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A sharded weight must be gathered, and the visible program does not state it.
// expect: gshard: an operand would be gathered implicitly \(visible\)
// expect: in_operation<.*"einsum"
// expect: operand_number<1>
// expect: over_axis<.*"x"
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

#if defined(MUST_FAIL)
inline constexpr auto model = [](auto&, auto x, auto w) { return gs::einsum<"BM,MH->BH">(x, w); };
#else
inline constexpr auto model = [](auto&, auto x, auto w) { return gs::einsum<"BM,MH->BH">(x, gs::may_move(w)); };
#endif
using compiled = gs::program<model, gs::mesh<gs::axis<"x">>, in<"BM", P<"x", none>>, in<"MH", P<none, "x">>,
                             gs::extent<'B', 1 << 20>, gs::visible>;
static_assert(compiled::plan.count(gs::op::all_gather) == 1);

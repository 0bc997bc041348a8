// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Both operands are sharded along the contracted index: a strict program must state whether the sum is replicated or sharded.
// expect: gshard: a sum over a sharded index would be completed implicitly \(strict\)
// expect: over_axis<.*"x"
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

#if defined(MUST_FAIL)
inline constexpr auto model = [](auto&, auto x, auto w) { return gs::einsum<"BM,MH->BH">(x, w); };
#else
inline constexpr auto model = [](auto&, auto x, auto w) { return gs::annotate<P<"x", none>>(gs::einsum<"BM,MH->BH">(x, w)); };
#endif
using compiled = gs::program<model, gs::mesh<gs::axis<"x">>, in<"BM", P<none, "x">>, in<"MH", P<"x", none>>, gs::strict>;
static_assert(compiled::plan.count(gs::op::reduce_scatter) == 1);

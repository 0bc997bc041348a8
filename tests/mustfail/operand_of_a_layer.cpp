// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An operand of a layer has wrong dims: the error names the layer and its operand, not an einsum inside.
// expect: gshard: one index or operation has two different dims
// expect: "moe"
// expect: operand_number<1>
// expect: dim_number<1, .*"S"
// expect: at_line<18
#include <gshard/moe/layer/moe.hpp>
#include <gshard/plan.hpp>

namespace gs = gshard;

#if defined(MUST_FAIL)
using mask_in = gs::in<"GT">;
#else
using mask_in = gs::in<"GS">;
#endif
inline constexpr auto model = [](auto& m, auto x, auto mask) { return gs::nn::moe<"expert">(m, x, mask).y; };
static_assert(gs::program<model, gs::mesh<gs::axis<"expert">>, gs::in<"GSM">, mask_in>::plan.collectives() >= 0);

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The parameters of a layer are integers. The error names the parameter and the allowed element types.
// expect: gshard: an operand has another element type than the operation takes
// expect: in_operation<.*"param"
// expect: operand_name<.*"moe.wi"
// expect: actual_element_type<.*"i32"
// expect: expected_element_types<.*"f32, f64, f16, bf16"
// expect: at_line<20
#include <gshard/moe/layer/moe.hpp>
#include <gshard/plan.hpp>

namespace gs = gshard;

#if defined(MUST_FAIL)
constexpr auto type = gs::dtype::i32;
#else
constexpr auto type = gs::dtype::bf16;
#endif
inline constexpr auto model = [](auto& m, auto x, auto mask) {
  return gs::nn::moe<"expert">(m.scope("moe"), x, mask, {.param_dtype = type}).y;
};
static_assert(gs::program<model, gs::mesh<gs::axis<"expert">>, gs::in<"GSM">, gs::in<"GS">>::plan.collectives() >= 0);

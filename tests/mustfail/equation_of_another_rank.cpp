// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An equation has another number of letters for an operand than the operand has dims.
// expect: gshard: a tensor has another number of dims than its partition spec, equation
// expect: in_operation<.*"GM,ME->GE"
// expect: operand_number<0>
// expect: expected_rank<2>
// expect: actual_rank<3>
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

#if defined(MUST_FAIL)
constexpr auto multiply = [](auto x, auto w) { return gs::einsum<"GM,ME->GE">(x, w); };
#else
constexpr auto multiply = [](auto x, auto w) { return gs::einsum<"GSM,ME->GSE">(x, w); };
#endif

inline constexpr auto model = [](auto& m, auto x) {
  return multiply(x, m.param("w", "ME", gs::init::zeros()));
};
static_assert(gs::program<model, gs::mesh<gs::axis<"data">>, in<"GSM">>::plan.collectives() == 0);

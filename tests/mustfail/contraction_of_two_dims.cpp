// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// M is contracted with H: letters are local to the equation, but the declared dims of tensors are global.
// expect: gshard: one index or operation has two different dims
// expect: in_operation<.*"GSM,MH->GSH"
// expect: operand_number<1>
// expect: dim_number<0, .*"M"
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

#if defined(MUST_FAIL)
constexpr auto letters = "HM";
#else
constexpr auto letters = "MH";
#endif

inline constexpr auto model = [](auto& m, auto x) {
  return gs::einsum<"GSM,MH->GSH">(x, m.param("w", letters, gs::init::zeros()));
};
static_assert(gs::program<model, gs::mesh<gs::axis<"data">>, in<"GSM">>::plan.collectives() == 0);

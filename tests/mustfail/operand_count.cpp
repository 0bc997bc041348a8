// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An equation has another number of operands than the call.
// expect: gshard: the einsum equation has another number of operands than the call
// expect: in_equation<.*"GSM->GS"
// expect: operands_in_equation<1>
// expect: operands_given<2>
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

#if defined(MUST_FAIL)
constexpr auto multiply = [](auto x, auto w) { return gs::einsum<"GSM->GS">(x, w); };
#else
constexpr auto multiply = [](auto x, auto w) { return gs::einsum<"GSM,ME->GS">(x, w); };
#endif

inline constexpr auto model = [](auto& m, auto x) {
  return multiply(x, m.param("w", "ME", gs::init::zeros()));
};
static_assert(gs::program<model, gs::mesh<gs::axis<"data">>, in<"GSM">>::plan.collectives() == 0);

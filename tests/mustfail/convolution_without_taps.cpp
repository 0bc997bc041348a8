// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// No letter of the second operand is the tap of a dim.
// expect: gshard: a convolution needs a tap
// expect: in_operation<.*"BXI,IO->BXO"
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

inline constexpr auto model = [](auto&, auto x, auto w) {
#if defined(MUST_FAIL)
  return gs::conv<"BXI,IO->BXO">(x, w);
#else
  return gs::einsum<"BXI,IO->BXO">(x, w);
#endif
};
using compiled = gs::program<model, gs::mesh<gs::axis<"x">>, in<"BXI", P<none, "x", none>>, in<"IO">>;
static_assert(compiled::plan.collectives() == 0);

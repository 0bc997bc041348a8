// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A parameter is declared as a partial sum.
// expect: gshard: a partial sum is used where a complete tensor is declared
// expect: in_tensor<.*"w"
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

#if defined(MUST_FAIL)
using layout = P<none, none, gs::partial<"model">>;
#else
using layout = P<none, "model">;
#endif

inline constexpr auto model = [](auto& m, auto x) {
  return gs::einsum<"BM,MH->BH">(x, m.param("w", "MH", layout{}, gs::init::zeros()));
};
static_assert(gs::program<model, gs::mesh<gs::axis<"model">>, in<"BM">>::plan.count(gs::op::all_reduce) == 0);

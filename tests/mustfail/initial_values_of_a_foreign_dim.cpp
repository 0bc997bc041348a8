// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The initial values of a parameter depend on a dim that it does not have.
// expect: gshard: the initial values of a parameter depend on a dim that it does not have
// expect: in_tensor<.*"layer.w"
// expect: index_letter<.*"B"
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

#if defined(MUST_FAIL)
constexpr auto fan_in = "B";
#else
constexpr auto fan_in = "M";
#endif

inline constexpr auto model = [](auto& m, auto x) {
  return gs::einsum<"BM,MH->BH">(x, m.scope("layer").param("w", "MH", gs::init::fan_in(fan_in)));
};
static_assert(gs::program<model, gs::mesh<gs::axis<"data">>, in<"BM">>::plan.collectives() == 0);

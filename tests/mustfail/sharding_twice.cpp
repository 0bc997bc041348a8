// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A parameter has its sharding in the text of its dims, and as a spec.
// expect: gshard: a tensor has its sharding twice: in the text of its dims, and as a spec
// expect: in_tensor<.*"w"
// expect: at_line<17>
#include <gshard/plan.hpp>

namespace gs = gshard;

inline constexpr auto model = [](auto& m, auto x) {
#if defined(MUST_FAIL)
  constexpr auto dims = "M,H@data";
#else
  constexpr auto dims = "MH";
#endif
  return gs::einsum<"BM,MH->BH">(x,
                                 m.param("w", dims, gs::P<gs::none, "data">{}, gs::init::zeros()));
};
static_assert(gs::program<model, gs::mesh<gs::axis<"data">>, gs::in<"BM">>::plan.collectives() == 0);

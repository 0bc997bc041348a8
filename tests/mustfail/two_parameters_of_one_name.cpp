// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Two parameters with different dims have the same name.
// expect: gshard: two parameters with different dims, initial values or partition specs have one name
// expect: in_tensor<.*"layer.w"
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

#if defined(MUST_FAIL)
constexpr auto second = "w";
#else
constexpr auto second = "v";
#endif

inline constexpr auto model = [](auto& m, auto x) {
  auto layer = m.scope("layer");
  auto h = gs::einsum<"BM,MH->BH">(x, layer.param("w", "MH", gs::init::zeros()));
  return gs::einsum<"BH,HM->BM">(h, layer.param(second, "HM", gs::init::zeros()));
};
static_assert(gs::program<model, gs::mesh<gs::axis<"data">>, in<"BM">>::plan.collectives() == 0);

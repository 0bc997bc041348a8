// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A parameter is read after the step has overwritten it.
// expect: gshard: a parameter is read after it was updated in place
// expect: "w"
#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

#if defined(MUST_FAIL)
constexpr bool early = false;
#else
constexpr bool early = true;
#endif

inline constexpr auto model = [](auto& m, auto x, auto rate) {
  auto w = m.param("w", "MH", gs::init::zeros());
  auto y = gs::relu(gs::einsum<"BM,MH->BH">(x, w));
  auto norm = gs::sum(w * w);
  gs::adam{}.minimize(m, gs::mean(y), rate);
  if (!early) norm = gs::sum(w * w);
  return norm;
};
static_assert(gs::program<model, gs::mesh<gs::axis<"data">>, in<"BM">, in<"">>::plan.collectives() == 0);

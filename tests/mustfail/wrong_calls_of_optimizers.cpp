// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Wrong calls of minimize: one sentence each, and nothing else.
// expect: gshard: adam\{\}\.minimize\(m, loss, rate\) takes the first argument of the model, a loss, and a rate: a scalar tensor
// expect: gshard: adam\{\}\.minimize\(m, loss, rate\) takes the first argument of the model, a loss, and a rate: a scalar tensor
// expect: gshard: adam\{\}\.minimize\(m, loss, rate\) takes the first argument of the model, a loss, and a rate: a scalar tensor
// expect: gshard: adafactor\{\}\.minimize\(m, loss, rate\) takes the first argument of the model, a loss, and maybe a rate
// expect: gshard: adafactor\{\}\.minimize\(m, loss, rate\) takes the first argument of the model, a loss, and maybe a rate
#include <gshard/plan.hpp>
#include <gshard/train/adafactor.hpp>
#include <gshard/train/adam.hpp>

namespace gs = gshard;

inline constexpr auto model = [](auto& m, auto x, auto rate) {
  const auto loss = gs::sum(x * m.param("w", "A", gs::init::zeros()));
#if defined(MUST_FAIL)
  gs::adam{}.minimize(m, loss);
  gs::adam{}.minimize(m, loss, 0.1f);
  gs::adam{}.minimize(loss, m, rate);
  gs::adafactor{}.minimize(loss, rate);
  gs::adafactor{}.minimize(m, loss, 0.1f);
#else
  gs::adam{}.minimize(m, loss, rate);
#endif
  return loss;
};
static_assert(gs::program<model, gs::mesh<gs::axis<"x">>, gs::in<"A">, gs::in<"">>::plan.collectives() == 0);

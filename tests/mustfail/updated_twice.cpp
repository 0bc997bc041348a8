// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A parameter is updated by hand and by an optimizer.
// expect: gshard: a parameter or variable is updated twice: by optimizers, or by m.update
// expect: in_tensor<.*"w"
#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

namespace gs = gshard;

inline constexpr auto model = [](auto& m, auto x, auto rate) {
  auto w = m.param("w", "A", gs::init::zeros());
  auto average = m.variable("average", "A", gs::init::zeros());
  auto loss = gs::sum(w * x);
  gs::adam{}.minimize(m, loss, rate);
#if defined(MUST_FAIL)
  m.update(w, 0.5 * x);
#endif
  m.update(average, 0.5 * average + 0.5 * m.updated(w));
  return loss;
};
static_assert(gs::program<model, gs::mesh<gs::axis<"x">>, gs::in<"A">, gs::in<"">>::plan.collectives() == 0);

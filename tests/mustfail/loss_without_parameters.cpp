// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A loss that depends on no parameter, for example because loss and rate are swapped.
// expect: gshard: a loss depends on no parameter: minimize takes the loss first, then the rate
// expect: in_operation<.*adam
#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

namespace gs = gshard;

inline constexpr auto model = [](auto& m, auto x, auto rate) {
  const auto loss = gs::sum(x * m.param("w", "A", gs::init::zeros()));
#if defined(MUST_FAIL)
  gs::adam{}.minimize(m, rate, loss);
#else
  gs::adam{}.minimize(m, loss, rate);
#endif
  return loss;
};
static_assert(gs::program<model, gs::mesh<gs::axis<"x">>, gs::in<"A">, gs::in<"">>::plan.collectives() == 0);

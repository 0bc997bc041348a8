// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A parameter is updated in a loop.
// expect: gshard: parameters are not updated in loops with a run-time trip count
// expect: "adam"
#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P, gs::symbol;

inline constexpr auto model = [](auto& m, auto turns, auto rate) {
  const auto w = m.param("w", "M", gs::init::zeros());
  const auto train = [&] { gs::adam{}.minimize(m, gs::sum(w * w), rate); };
#if !defined(MUST_FAIL)
  train();
#endif
  return gs::repeat(turns, [&](symbol s) {
#if defined(MUST_FAIL)
    train();
#endif
    return s + s;
  }, rate);
};
static_assert(gs::program<model, gs::mesh<gs::axis<"data">>, in<"">, in<"">>::plan.collectives() == 0);

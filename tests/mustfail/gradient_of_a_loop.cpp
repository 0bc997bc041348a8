// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The gradient of a loop with a run-time trip count.
// expect: gshard: a loop with a run-time trip count has no gradient: use scan, repeat<n> or stop_gradient
// expect: "while_loop"
#include <gshard/plan.hpp>

#include <array>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

inline constexpr auto model = [](auto&, auto x, [[maybe_unused]] auto turns) {
  const auto doubled = [](auto s) { return s + s; };
#if defined(MUST_FAIL)
  const auto y = gs::repeat(turns, doubled, x);
#else
  const auto y = gs::repeat<3>(x, doubled);
#endif
  return gs::gradients(gs::sum(y), std::array{x})[0];
};
static_assert(gs::program<model, gs::mesh<gs::axis<"data">>, in<"B">, in<"">>::plan.collectives() == 0);

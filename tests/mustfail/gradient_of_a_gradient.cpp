// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reverse mode has no second derivative of a map.
// expect: gshard: no gradient is known for an operation
// expect: "map: second derivative"
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

#if defined(MUST_FAIL)
constexpr int order = 2;
#else
constexpr int order = 1;
#endif

inline constexpr auto model = [](auto&, auto x) {
  auto y = gs::map<[](auto v) { return v * v * v; }>(x);
  for (int i = 0; i < order; ++i) y = gs::gradients(gs::sum(y), std::array{x})[0];
  return y;
};
static_assert(gs::program<model, gs::mesh<gs::axis<"data">>, in<"B">>::plan.collectives() == 0);

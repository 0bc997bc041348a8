// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A tensor is used as a condition in the code of a program.
// expect: gshard: a tensor of a program has no numbers yet: use select or while_loop in place of if
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"data">>;

inline constexpr auto model = [](auto&, auto a, auto b) {
#if defined(MUST_FAIL)
  if (a > b) return a;
  return b;
#else
  return gs::select(a > b, a, b);
#endif
};
static_assert(gs::program<model, mesh, in<"AB">, in<"AB">>::plan.count(gs::op::map) == 2);

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Two tensors are concatenated, but their other dims differ.
// expect: gshard: one index or operation has two different dims
// expect: in_operation<.*"concat"
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

#if defined(MUST_FAIL)
using second = in<"AC">;
#else
using second = in<"CB">;
#endif
inline constexpr auto model = [](auto&, auto x, auto y) { return gs::concat({x, y}, 0); };
using compiled = gs::program<model, gs::mesh<gs::axis<"x">>, in<"AB">, second>;
static_assert(compiled::plan.collectives() == 0);

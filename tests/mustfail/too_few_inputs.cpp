// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A program has fewer inputs than its model takes.
// expect: gshard: the model takes another number of tensors
// expect: inputs_given<1>
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in;
using mesh = gs::mesh<gs::axis<"data">>;

inline constexpr auto model = [](auto&, auto x, auto y) { return x + y; };
#if defined(MUST_FAIL)
static_assert(gs::program<model, mesh, in<"B">>::plan.collectives() == 0);
#else
static_assert(gs::program<model, mesh, in<"B">, in<"B">>::plan.collectives() == 0);
#endif

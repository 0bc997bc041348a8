// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A tensor is annotated as a partial sum.
// expect: gshard: a partial sum is used where a complete tensor is declared
// expect: "annotate"
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

#if defined(MUST_FAIL)
using layout = P<none, none, gs::partial<"model">>;
#else
using layout = P<none, "model">;
#endif

inline constexpr auto model = [](auto&, auto x) { return gs::annotate<layout>(x); };
static_assert(gs::program<model, gs::mesh<gs::axis<"model">>, in<"BM">>::plan.collectives() == 0);

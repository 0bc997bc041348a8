// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A verb with an equation gets the number of a dim, as in other libraries.
// expect: gshard: malformed einsum equation: expected index letters
// expect: in_equation<.*"<number>"
#include <gshard/plan.hpp>

namespace gs = gshard;

#if defined(MUST_FAIL)
inline constexpr auto model = [](auto&, auto x) { return gs::mean<1>(x); };
#else
inline constexpr auto model = [](auto&, auto x) { return gs::mean<"BM->B">(x); };
#endif
static_assert(gs::program<model, gs::mesh<gs::axis<"data">>, gs::in<"BM">>::plan.collectives() == 0);

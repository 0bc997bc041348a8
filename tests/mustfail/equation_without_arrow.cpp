// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An equation has no output. Only equations of einsum may omit it.
// expect: gshard: malformed einsum equation: expected index letters
// expect: in_equation<.*"GSM"
// expect: at_column<3>
#include <gshard/plan.hpp>

namespace gs = gshard;

#if defined(MUST_FAIL)
inline constexpr auto model = [](auto&, auto x) { return gs::sum<"GSM">(x); };
#else
inline constexpr auto model = [](auto&, auto x) { return gs::einsum<"GSM">(x); };
#endif
static_assert(gs::program<model, gs::mesh<gs::axis<"data">>, gs::in<"GSM">>::plan.collectives() == 0);

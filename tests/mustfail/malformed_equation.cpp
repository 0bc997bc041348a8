// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An equation has an invalid character. The error has its column.
// expect: gshard: malformed einsum equation: expected index letters
// expect: in_equation<.*"GSM;ME->GSE"
// expect: at_column<3>
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

#if defined(MUST_FAIL)
constexpr auto multiply = [](auto x, auto w) { return gs::einsum<"GSM;ME->GSE">(x, w); };
#else
constexpr auto multiply = [](auto x, auto w) { return gs::einsum<"GSM,ME->GSE">(x, w); };
#endif

inline constexpr auto model = [](auto& m, auto x) {
  return multiply(x, m.param("w", "ME", gs::init::zeros()));
};
static_assert(gs::program<model, gs::mesh<gs::axis<"data">>, in<"GSM">>::plan.collectives() == 0);

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A broadcast adds an index of unknown extent.
// expect: gshard: an output index of the einsum equation is in no operand
// expect: in_equation<.*"Q->QK"
// expect: index_letter<.*"K"
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in;

#if defined(MUST_FAIL)
constexpr auto spread = [](auto q, auto) { return gs::broadcast<"Q->QK">(q); };
#else
constexpr auto spread = [](auto q, auto k) { return gs::broadcast<"Q,K->QK">(q, k); };
#endif

inline constexpr auto grid = [](auto&, auto q, auto k) { return spread(q, k); };
static_assert(gs::program<grid, gs::mesh<gs::axis<"data">>, in<"A">, in<"B">>::plan.collectives() == 0);

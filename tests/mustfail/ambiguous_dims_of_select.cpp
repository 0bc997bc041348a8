// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tensors have the dim of the condition twice.
// expect: gshard: the dims of an operand match those of the largest operand in several ways
// expect: in_operation<.*"map"
// expect: operand_number<0>
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in;

#if defined(MUST_FAIL)
#define LETTERS "T"
#else
#define LETTERS "HAB"
#endif

inline constexpr auto chosen = [](auto&, auto x, auto y, auto seen) { return gs::select(seen, x, y); };
static_assert(gs::program<chosen, gs::mesh<gs::axis<"data">>, in<"THABT">, in<"THABT">, in<LETTERS>>::plan.collectives() == 0);

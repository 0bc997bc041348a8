// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A row of maxima is subtracted from a square matrix, and its dim matches both dims of the matrix.
// expect: gshard: the dims of an operand match those of the largest operand in several ways
// expect: in_operation<.*"map"
// expect: operand_number<1>
// expect: at_line<18>
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in;

#if defined(MUST_FAIL)
constexpr auto spread = [](auto top, auto) { return top; };
#else
constexpr auto spread = [](auto top, auto x) { return gs::broadcast<"Q,QK->QK">(top, x); };
#endif

inline constexpr auto centered = [](auto&, auto x) { return x - spread(gs::reduce_max<"QK->Q">(x), x); };
static_assert(gs::program<centered, gs::mesh<gs::axis<"data">>, in<"TT">>::plan.collectives() == 0);

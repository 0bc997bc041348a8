// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The dims of a bias are not among the dims of the tensor to which it is added.
// expect: gshard: the dims of an operand are not among the dims of the largest operand
// expect: in_operation<.*"map"
// expect: operand_number<1>
// expect: at_line<18>
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

#if defined(MUST_FAIL)
constexpr auto letters = "H";
#else
constexpr auto letters = "M";
#endif

inline constexpr auto model = [](auto& m, auto x) { return x + m.param("bias", letters, gs::init::zeros()); };
static_assert(gs::program<model, gs::mesh<gs::axis<"data">>, in<"GSM">>::plan.collectives() == 0);

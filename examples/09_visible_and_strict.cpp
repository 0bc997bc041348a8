// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// No hidden communication: a visible program compiles only if every gather is stated, a strict one only if every collective is.
#include <gshard/plan.hpp>
#include <gshard/sim/report/describe.hpp>

#include <iostream>

namespace gs = gshard;
namespace op = gs::op;
using gs::in;
using mesh = gs::mesh<gs::axis<"x", 4>>;

// Rows of x, columns of w: one operand must be gathered. In a visible program this does not compile without may_move:
//   gshard: an operand would be gathered implicitly (visible): annotate it, or write may_move(operand)
inline constexpr auto gathers = [](auto&, auto x, auto w) { return gs::einsum<"BM,MH->BH">(x, gs::may_move(w)); };
using visible = gs::program<gathers, mesh, in<"B@x,M">, in<"M,H@x">, gs::visible>;
static_assert(visible::plan.count(op::all_gather) == 1);

// In a strict program, sums must be stated as well. annotate gives the sharding of the result, which determines the collective.
inline constexpr auto sums = [](auto&, auto x, auto w) { return gs::annotate<"B@x,H">(gs::einsum<"BM,MH->BH">(x, w)); };
using strict = gs::program<sums, mesh, in<"B,M@x">, in<"M@x,H">, gs::strict>;
static_assert(strict::plan.count(op::reduce_scatter) == 1);

int main() { std::cout << gs::describe(visible::plan) << gs::describe(strict::plan); }

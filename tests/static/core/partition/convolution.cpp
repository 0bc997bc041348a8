// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/plan.hpp>

#include "../../soundness.hpp"

namespace gs = gshard;
namespace op = gs::op;
using gs::in, gs::none, gs::P;

namespace {

// Sharded taps stay sharded: their elements are local or exchanged, and the result is a partial sum.
inline constexpr auto long_taps = [](auto&, auto x, auto w) { return gs::conv<"BXI,BxO->XIO">(x, w, {{.step = 2}}); };
template <int Long, class... Options>
using taps =
    gs::program<long_taps, gs::mesh<gs::axis<"x", 2>>, in<"BXI", P<none, "x", none>>, in<"BKO", P<none, "x", none>>, gs::extent<'X', Long>,
                gs::extent<'K', 8>, gs::extent<'B', 64>, gs::extent<'I', 64>, gs::extent<'O', 64>, Options...>;
static_assert(taps<16>::plan.count(op::all_reduce) == 1 && taps<16>::plan.collectives() == 1 && soundness::is_sound(taps<16>::plan));
static_assert(taps<16, gs::partial_outputs>::plan.collectives() == 0);
static_assert(taps<20>::plan.count(op::collective_permute) == 1 && taps<20>::plan.count(op::all_reduce) == 1 &&
              taps<20>::plan.collectives() == 2 && soundness::is_sound(taps<20>::plan));

// Otherwise the smaller operand is resharded: here the second one, to the elements of the first one's blocks.
inline constexpr auto dilated = [](auto&, auto x, auto w) { return gs::conv<"BXI,BxO->XIO">(x, w, {{.low = 1, .step = 2}}); };
template <int I, int O>
using border = gs::program<dilated, gs::mesh<gs::axis<"x", 2>>, in<"BXI", P<none, "x", none>>, in<"BKO", P<none, "x", none>>,
                           gs::extent<'B', 64>, gs::extent<'X', 8>, gs::extent<'K', 4>, gs::extent<'I', I>, gs::extent<'O', O>>;
/// The number of the operand that the convolution reads through a window: 1 or 2.
constexpr int fetched(const gs::plan_view& p) {
  int which = 0;
  for (const gs::node& n : p.steps)
    for (int i = 0; n.kind == op::convolution && i < 2; ++i)
      if (!p.at(n.input(i)).windows.empty()) which += i + 1;
  return which;
}
static_assert(fetched(border<64, 8>::plan) == 2 && border<64, 8>::plan.collectives() == 2 && soundness::is_sound(border<64, 8>::plan));
static_assert(fetched(border<8, 64>::plan) == 1 && border<8, 64>::plan.collectives() == 2 && soundness::is_sound(border<8, 64>::plan));

}  // namespace

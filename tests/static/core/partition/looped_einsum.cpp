// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/plan.hpp>

#include "communication.hpp"

#include <array>
#include <cstdint>

namespace gs = gshard;
namespace op = gs::op;
using gs::in, gs::none, gs::P, gs::plan_view;
using communication::output_of, communication::plan_of, communication::sends;

namespace {

using mesh = gs::mesh<gs::axis<"x">>;
inline constexpr auto matmul = [](auto&, auto x, auto w) { return gs::einsum<"AB,BC->AC">(x, w); };
inline constexpr auto scattered = [](auto&, auto x, auto w) { return gs::annotate<P<"x", none>>(gs::einsum<"AB,BC->AC">(x, w)); };

// An operand that is too large to be whole on a device is sent block by block, with the bytes of the gather. Only known extents count.
template <std::int64_t Above>
constexpr plan_view tall_plan = plan_of<matmul, mesh, in<"AB", P<"x", none>>, in<"BC", P<none, "x">>, gs::extent<'A', 4096>,
                                        gs::extent<'B', 32>, gs::extent<'C', 64>, gs::loop_above<Above>>;
static_assert(sends(tall_plan<32 * 64 * 4>, {op::all_gather}) && sends(tall_plan<32 * 64 * 4 - 1>, {op::looped_einsum}));
static_assert(tall_plan<0>.count(op::einsum) == 0 && gs::ring_operand(tall_plan<0>.steps[0]) == tall_plan<0>.inputs[1].value &&
              tall_plan<0>.steps[0].attr.axes == 1);
static_assert(output_of(tall_plan<0>).layout.same_layout(output_of(tall_plan<1 << 20>).layout));
constexpr std::int64_t bytes_on_four(const plan_view& p) {
  constexpr std::array four{4};
  return p.bytes_received(p.bind({{'A', 4096}, {'B', 32}, {'C', 64}}, four));
}
static_assert(bytes_on_four(tall_plan<0>) == bytes_on_four(tall_plan<1 << 20>) && bytes_on_four(tall_plan<0>) == 3 * 32 * 16 * 4);
static_assert(sends(plan_of<matmul, mesh, in<"AB", P<"x", none>>, in<"BC", P<none, "x">>, gs::loop_above<0>>, {op::all_gather}));
static_assert(sends(plan_of<matmul, mesh, in<"AB", P<"x", none>>, in<"BC", P<none, "x">>, gs::extent<'A', 1 << 20>,
                            gs::extent<'B', 1 << 14>, gs::extent<'C', 1 << 14>>,
                    {op::looped_einsum}));
// Partial sums of a result that should be sharded.
inline constexpr auto scattered_on = [](auto&, auto x, auto w) {
  return gs::relu(gs::annotate<P<"x", none>>(gs::einsum<"AB,BC->AC">(x, w)));
};
template <auto Model, class... More>
constexpr plan_view sums_plan =
    plan_of<Model, mesh, in<"AB", P<none, "x">>, in<"BC", P<"x", none>>, gs::extent<'A', 64>, gs::extent<'C', 64>, More...>;
static_assert(sends(sums_plan<scattered>, {op::reduce_scatter}) && sends(sums_plan<scattered, gs::loop_above<0>>, {op::looped_einsum}));
static_assert(sends(sums_plan<scattered_on, gs::loop_above<0>>, {op::looped_einsum}) &&
              gs::ring_carries_sum(sums_plan<scattered, gs::loop_above<0>>.steps[0]));
// Not a sum that stays pending, or that should be replicated.
static_assert(sends(sums_plan<matmul, gs::loop_above<0>>, {op::all_reduce}));
static_assert(sends(sums_plan<matmul, gs::loop_above<0>, gs::partial_outputs>, {}));
// A contracted index is gathered in a ring only if devices hold different parts of the result: replicas need equal bits.
static_assert(sends(plan_of<matmul, mesh, in<"AB", P<none, "x">>, in<"BC", P<none, "x">>, gs::extent<'A', 8>, gs::extent<'B', 64>,
                            gs::extent<'C', 4096>, gs::loop_above<0>>,
                    {op::looped_einsum}));

}  // namespace

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/trace/chunks.hpp>

#include <gshard/nn/moe.hpp>
#include <gshard/optim/adam.hpp>
#include <gshard/pass/schedule/async_schedule.hpp>
#include <gshard/plan.hpp>

#include "../tracing.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace gs = gshard;
using gs::builder, gs::fault, gs::none, gs::op, gs::P, gs::symbol;
using tracing::fails, tracing::has_dims, tracing::input;

namespace {

// A chunk has its share of the slots, and what the gating says about all of them.
static_assert(tracing::holds([](builder& b, auto&) {
  const gs::gating_result gating = gs::top_k_gating(input(b, "GSE"), {.k = 4});
  const gs::gating_result chunk = gs::chunk_of(gating, 1, 3);
  return has_dims(chunk.combine, "GSEC") && chunk.combine.get().dims == chunk.dispatch.get().dims &&
         chunk.combine.get().dims[3] != gating.combine.get().dims[3] && chunk.load.id == gating.load.id &&
         chunk.overflow.id == gating.overflow.id && chunk.aux.id == gating.aux.id;
}));
static_assert(fails(fault::bad_range, "chunk_of", [](builder& b, auto&) { gs::chunk_of(gs::top2_gating(input(b, "GSE")), 2, 2); }));
static_assert(fails(fault::bad_range, "chunk_of", [](builder& b, auto&) { gs::chunk_of(gs::top2_gating(input(b, "GSE")), -1, 2); }));
static_assert(fails(fault::bad_range, "chunk_of", [](builder& b, auto&) { gs::chunk_of(gs::top2_gating(input(b, "GSE")), 0, 0); }));
static_assert(fails(fault::wrong_gating, "chunk_of", [](builder& b, auto&) {
  const symbol mask = input(b, "GSEC");
  gs::chunk_of({mask, mask, mask, mask, mask}, 0, 2);
}));
static_assert(fails(fault::bad_range, "moe", [](builder& b, auto& m) {
  gs::nn::moe<"x">(m, input(b, "GSM"), input(b, "GS"), {.chunks = 0});
}));
static_assert(tracing::conflicts("moe", ".expert_groups and .chunks", [](builder& b, auto& m) {
  gs::nn::moe<"x", "y">(m, input(b, "GSM"), input(b, "GS"), {.expert_groups = 2, .chunks = 2});
}));

// In a layer, each chunk has its own exchanges, forward and back. The weights' gradients are those of all chunks.
template <int Chunks>
inline constexpr auto step = [](auto& m, auto x, auto mask, auto rate) {
  const auto r = gs::nn::moe<"expert">(m, x, mask, {.chunks = Chunks});
  const auto loss = gs::mean(r.y * r.y);
  gs::adam{}.minimize(m, m.objective(loss, 0.01), rate);
  return loss;
};
using mesh = gs::mesh<gs::axis<"expert", 4>>;
template <int Chunks>
constexpr auto plan_of = gs::program<step<Chunks>, mesh, gs::in<"GSM", P<"expert", none, none>>, gs::in<"GS", P<"expert", none>>,
                                     gs::in<"", void>>::plan;
static_assert(plan_of<1>.count(op::all_to_all) == 3 && plan_of<2>.count(op::all_to_all) == 6 && plan_of<4>.count(op::all_to_all) == 12);
static_assert(plan_of<4>.count(op::all_reduce) == plan_of<1>.count(op::all_reduce));
static_assert(plan_of<4>.count(op::one_hot) == 0 && plan_of<4>.count(op::reduce_scatter) == plan_of<1>.count(op::reduce_scatter));

// Forward, the second chunk travels while the first one is computed, and the results of the first while the second one is.
static_assert([] {
  using program = gs::program<step<2>, mesh, gs::in<"GSM", P<"expert", none, none>>, gs::in<"GS", P<"expert", none>>, gs::in<"", void>>;
  constexpr gs::plan_view plan = program::plan;
  constexpr std::array<int, 1> devices{4};
  const auto all = gs::async_schedule(plan, plan.bind({{'G', 4}, {'S', 4096}, {'E', 8}, {'M', 64}, {'F', 128}},
                                                      gs::list_view<int>(devices.data(), devices.size())));
  const auto step_of = [&](op kind, int k) {
    std::int32_t i = 0;
    while (plan.steps[std::size_t(i)].kind != kind || k-- > 0) ++i;
    return i;
  };
  const std::int32_t first_product = step_of(op::einsum, 1), of_second = step_of(op::einsum, 3);  // product 0 is that of the gate
  const gs::async_interval second = all[std::size_t(step_of(op::all_to_all, 1))], back = all[std::size_t(step_of(op::all_to_all, 2))];
  return second.start <= first_product && second.finish == of_second && back.start <= of_second && back.finish > of_second;
}());

}  // namespace

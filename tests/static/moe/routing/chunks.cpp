// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/moe/routing/chunks.hpp>

#include <gshard/core/schedule/async_schedule.hpp>
#include <gshard/moe/layer/moe.hpp>
#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

#include "../../tracing.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace gs = gshard;
namespace op = gs::op;
using gs::builder, gs::fault, gs::none, gs::P, gs::symbol;
using tracing::fails, tracing::has_dims, tracing::input;

namespace {

// A chunk has its share of the slots, and the common results of the gating.
static_assert(tracing::holds([](builder& b, auto&) {
  const gs::gating_result gating = gs::top_k_gating(input(b, "GSE"), {.k = 4});
  const gs::gating_result chunk = gs::chunk_of(gating, 1, 3);
  return has_dims(chunk.combine, "GSEC") && chunk.combine.get().dims == chunk.dispatch.get().dims &&
         chunk.combine.get().dims[3] != gating.combine.get().dims[3] && chunk.load.id == gating.load.id &&
         chunk.overflow.id == gating.overflow.id && chunk.aux.id == gating.aux.id;
}));
static_assert(tracing::out_of_range("chunk_of", "i, n", {2, 2},
                                    [](builder& b, auto&) { gs::chunk_of(gs::top2_gating(input(b, "GSE")), 2, 2); }));
static_assert(tracing::out_of_range("chunk_of", "i, n", {-1, 2},
                                    [](builder& b, auto&) { gs::chunk_of(gs::top2_gating(input(b, "GSE")), -1, 2); }));
static_assert(tracing::out_of_range("chunk_of", "n", {0},
                                    [](builder& b, auto&) { gs::chunk_of(gs::top2_gating(input(b, "GSE")), 0, 0); }));
static_assert(fails(fault::wrong_gating, "chunk_of", [](builder& b, auto&) {
  const symbol mask = input(b, "GSEC");
  gs::chunk_of({mask, mask, mask, mask, mask, mask}, 0, 2);
}));
static_assert(tracing::out_of_range("moe", ".chunks", {0}, [](builder& b, auto& m) {
  gs::nn::moe<"x">(m, input(b, "GSM"), input(b, "GS"), {.chunks = 0});
}));
static_assert(tracing::out_of_range("moe", ".chunks", {-1}, [](builder& b, auto& m) {
  gs::nn::moe<"x", "y">(m, input(b, "GSM"), input(b, "GS"), {.experts = gs::experts::in_groups(2), .chunks = -1});
}));

// Token groups in any number of chunks, which are joined to the tensor again. Gatings of chunks are accepted like whole ones.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "GSM");
  for (const int n : {1, 2, 7, 20}) {
    const auto chunks = gs::chunks_of_token_groups(x, n);
    if (chunks.size() != std::size_t(n) || !has_dims(chunks[0], n == 1 ? "GSM" : "CSM") ||
        gs::join_token_groups(chunks).get().dims != x.get().dims)
      return false;
  }
  const gs::gating_result gating = gs::top_k_gating(input(b, "GSE"), {.k = 4});
  const auto chunks = gs::chunks_of_token_groups(gating, 3);
  const gs::expert_group_routing sent = gs::send_to_expert_groups(chunks[2], gs::chunks_of_token_groups(x, 3)[2], 2);
  return chunks.size() == 3 && has_dims(chunks[2].combine, "CSEC") && chunks[2].combine.get().dims == chunks[2].dispatch.get().dims &&
         chunks[2].load.id == gating.load.id && has_dims(sent.row, "CS#") &&
         gs::chunks_of_token_groups(gating, 1)[0].combine.id == gating.combine.id;
}));
static_assert(tracing::out_of_range("chunks_of_token_groups", "n", {0},
                                    [](builder& b, auto&) { gs::chunks_of_token_groups(input(b, "GSM"), 0); }));
static_assert(fails(fault::uneven_chunks, "chunks_of_token_groups", [](builder& b, auto&) {
  b.options.known = {{'G', 6}};
  gs::chunks_of_token_groups(input(b, "GSM"), 4);
}));
static_assert(fails(fault::uneven_chunks, "chunks_of_token_groups", [](builder& b, auto&) {
  b.options.known = {{'G', 6}};
  gs::chunks_of_token_groups(gs::top_k_gating(input(b, "GSE")), 4);
}));
static_assert(fails(fault::uneven_chunks, "moe", [](builder& b, auto& m) {
  b.options.known = {{'G', 6}};
  gs::nn::moe<"x", "y">(m, input(b, "GSM"), input(b, "GS"), {.experts = gs::experts::in_groups(2), .chunks = 4});
}));
// Chunks of slots need not divide the token groups.
static_assert(tracing::holds([](builder& b, auto& m) {
  b.options.known = {{'G', 6}};
  return has_dims(gs::nn::moe<"x">(m, input(b, "GSM"), input(b, "GS"), {.chunks = 4}).y, "GSM");
}));
static_assert(tracing::holds([](builder& b, auto&) {
  b.options.known = {{'G', 6}};
  return gs::chunks_of_token_groups(input(b, "GSM"), 3).size() == 3;
}));
static_assert(fails(fault::no_such_dim, "chunks_of_token_groups", [](builder& b, auto&) {
  gs::chunks_of_token_groups(gs::sum(input(b, "GSM")), 2);
}));
static_assert(fails(fault::wrong_gating, "chunks_of_token_groups", [](builder& b, auto&) {
  const symbol mask = input(b, "GSEC");
  gs::chunks_of_token_groups(gs::gating_result{mask, mask, mask, mask, mask, mask}, 2);
}));
static_assert(fails(fault::dims_differ, "join_token_groups", [](builder& b, auto&) {
  gs::join_token_groups({input(b, "GSM"), input(b, "GSM")});
}));
static_assert(fails(fault::dims_differ, "join_token_groups", [](builder& b, auto&) {  // two of three chunks
  const auto chunks = gs::chunks_of_token_groups(input(b, "GSM"), 3);
  gs::join_token_groups({chunks[0], chunks[1]});
}));
static_assert(fails(fault::dims_differ, "concat", [](builder& b, auto&) {
  const auto chunks = gs::chunks_of_token_groups(input(b, "GSM"), 2);
  gs::join_token_groups({chunks[0], gs::chunks_of_token_groups(input(b, "GSF"), 2)[1]});
}));

// In a layer, each chunk has its own exchanges, forward and backward. The weights' gradients sum over all chunks.
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

// Forward, the second chunk is sent while the first one is computed. The results of the first are sent while the second one is computed.
static_assert([] {
  using program = gs::program<step<2>, mesh, gs::in<"GSM", P<"expert", none, none>>, gs::in<"GS", P<"expert", none>>, gs::in<"", void>>;
  constexpr gs::plan_view plan = program::plan;
  constexpr std::array<int, 1> devices{4};
  const auto all = gs::async_schedule(plan, plan.bind({{'G', 4}, {'S', 4096}, {'E', 8}, {'M', 64}, {'F', 128}},
                                                      gs::list_view<int>(devices.data(), devices.size())));
  const auto step_of = [&](gs::op_ref kind, int k) {
    std::int32_t i = 0;
    while (plan.steps[std::size_t(i)].kind != kind || k-- > 0) ++i;
    return i;
  };
  const std::int32_t first_product = step_of(op::einsum, 1), of_second = step_of(op::einsum, 3);  // product 0 is the gate
  const gs::async_interval second = all[std::size_t(step_of(op::all_to_all, 1))], back = all[std::size_t(step_of(op::all_to_all, 2))];
  return second.start <= first_product && second.finish == of_second && back.start <= of_second && back.finish > of_second;
}());

// Experts in groups: each chunk has its own exchanges, between nodes and within them, forward and backward.
template <int Chunks>
inline constexpr auto step_in_groups = [](auto& m, auto x, auto mask, auto rate) {
  const auto r = gs::nn::moe<"node", "expert">(m, x, mask, {.experts = gs::experts::in_groups(2), .chunks = Chunks});
  const auto loss = gs::mean(r.y * r.y);
  gs::adam{}.minimize(m, m.objective(loss, 0.01), rate);
  return loss;
};
using nodes = gs::mesh<gs::axis<"node", 2>, gs::axis<"expert", 2>>;
template <int Chunks>
using in_groups = gs::program<step_in_groups<Chunks>, nodes, gs::in<"GSM", P<gs::axes<"expert", "node">, none, none>>,
                              gs::in<"GS", P<gs::axes<"expert", "node">, none>>, gs::in<"", void>>;
template <int Chunks>
constexpr auto plan_in_groups = in_groups<Chunks>::plan;
static_assert(plan_in_groups<2>.count(op::all_to_all) == 2 * plan_in_groups<1>.count(op::all_to_all));
static_assert(plan_in_groups<4>.count(op::all_to_all) == 4 * plan_in_groups<1>.count(op::all_to_all));
static_assert(plan_in_groups<4>.count(op::all_reduce) == plan_in_groups<1>.count(op::all_reduce));
static_assert(plan_in_groups<4>.count(op::one_hot) == 0 &&
              plan_in_groups<4>.count(op::all_gather) == plan_in_groups<1>.count(op::all_gather) &&
              plan_in_groups<4>.count(op::reduce_scatter) == plan_in_groups<1>.count(op::reduce_scatter));

// Forward, the rows of the second chunk are sent between nodes while the first one is computed. The results of the first are sent while the
// second one is computed. The second chunk's exchanges within a node are in flight with those of the first.
static_assert([] {
  constexpr gs::plan_view plan = in_groups<2>::plan;
  constexpr std::array<int, 2> devices{2, 2};
  const auto all = gs::async_schedule(plan, plan.bind({{'G', 8}, {'S', 4096}, {'E', 8}, {'M', 64}, {'F', 128}},
                                                      gs::list_view<int>(devices.data(), devices.size())));
  const auto step_of = [&](gs::op_ref kind, int k, auto&& counts) {
    std::int32_t i = 0;
    while (plan.steps[std::size_t(i)].kind != kind || !counts(plan.steps[std::size_t(i)]) || k-- > 0) ++i;
    return i;
  };
  const auto any = [](const gs::node&) { return true; };
  const auto over = [](int axis) { return [axis](const gs::node& n) { return n.attr.axes == 1u << axis; }; };
  const auto exchange = [&](int axis, int k) { return all[std::size_t(step_of(op::all_to_all, k, over(axis)))]; };
  const std::int32_t first_product = step_of(op::einsum, 1, any), of_second = step_of(op::einsum, 3, any);
  const gs::async_interval to_nodes = exchange(0, 1), from_nodes = exchange(0, 2), within = exchange(1, 2), back = exchange(1, 1);
  return to_nodes.start < first_product && to_nodes.finish > first_product && to_nodes.finish < of_second &&
         from_nodes.start < of_second && from_nodes.finish > of_second && within.start < back.finish && back.start < within.finish;
}());

}  // namespace

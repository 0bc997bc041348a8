// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a training step of the mixture-of-experts Transformer sends.
#include <gshard/nn/transformer.hpp>
#include <gshard/optim/adam.hpp>
#include <gshard/plan.hpp>

#include "../soundness.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>

namespace gs = gshard;
namespace nn = gshard::nn;
using gs::in, gs::none, gs::op, gs::P;

namespace {

constexpr int moe_layers = 2;  // of four: every second one

template <bool Fused>
inline constexpr auto loss_of = [](auto& m, auto source, auto target_in, auto target_out,
                                   nn::routing_summary& routing) {
  constexpr nn::transformer_options options{.encoder_layers = 2, .decoder_layers = 2, .dropout = 0.1, .moe = {}, .fused_attention = Fused};
  auto table = m.param("embedding", "VM", gs::init::fan_in("M"));
  auto source_mask = nn::real_tokens(m, source), target_mask = nn::real_tokens(m, target_in);
  auto memory = nn::encode<"expert">(m.scope("encoder"), table, source, source_mask, options, routing);
  auto y = nn::decode<"expert">(m.scope("decoder"), table, target_in, target_mask, memory, source_mask,
                                options, routing);
  auto logits = gs::einsum<"GBTM,VM->GBTV">(y, table);
  return gs::sum(gs::cross_entropy(logits, target_out, 0.1) * target_mask) / gs::sum(target_mask);
};
inline constexpr auto evaluate = [](auto& m, auto source, auto target_in, auto target_out) {
  nn::routing_summary routing;
  return loss_of<false>(m, source, target_in, target_out, routing);
};
template <bool Fused>
inline constexpr auto train = [](auto& m, auto source, auto target_in, auto target_out, auto rate) {
  nn::routing_summary routing;
  auto nll = loss_of<Fused>(m, source, target_in, target_out, routing);
  gs::adam{}.minimize(m, m.objective(nll, 0.01), rate);
  return std::tuple{nll, nn::routing_summary::total(routing.load),
                    nn::routing_summary::total(routing.overflow)};
};

constexpr int trainables(const gs::plan_view& p) {
  return int(std::count_if(p.parameters.begin(), p.parameters.end(),
                           [](const gs::parameter& q) { return q.trainable; }));
}
constexpr int sums_of_tensors(const gs::plan_view& p) {
  int n = 0;
  for (const gs::node& s : p.steps)
    for (int i = 0; s.kind == op::all_reduce && i < s.inputs; ++i) n += p.at(s.input(i)).rank() > 0;
  return n;
}
constexpr bool all_updated_in_place(const gs::plan_view& p) {
  return std::all_of(p.parameters.begin(), p.parameters.end(), [&](const gs::parameter& q) {
    return q.updated >= 0 && p.lifetimes[std::size_t(q.updated)].root == q.value;
  });
}
// The experts' matrices are the only parameters that are sharded; every device holds the rest.
constexpr bool only_experts_are_cut(const gs::plan_view& p) {
  return std::all_of(p.parameters.begin(), p.parameters.end(), [&](const gs::parameter& q) {
    // (Not by find: under -fsanitize=undefined g++ does not take it for constant.)
    const std::string_view name = q.name.view(), end = name.size() < 6 ? name : name.substr(name.size() - 6);
    const bool expert = end == "moe.wi" || end == "moe.wo";
    return (p.at(q.value).layout.used() != 0) == expert;
  });
}

template <class Mesh, class Groups>
struct programs {
  template <auto Model, class... More>
  using of = gs::program<Model, Mesh, in<"GBS", Groups, std::int32_t>, in<"GBT", Groups, std::int32_t>,
                         in<"GBT", Groups, std::int32_t>, More...>;
  static constexpr gs::plan_view step = of<train<false>, in<"">>::plan;
  static constexpr gs::plan_view fused_step = of<train<true>, in<"">>::plan;
  static constexpr gs::plan_view forward = of<evaluate>::plan;
};

using one_axis = programs<gs::mesh<gs::axis<"expert">>, P<"expert", none, none>>;

// Forward: two exchanges a layer of experts, and the two sums of the loss together.
static_assert(one_axis::forward.count(op::all_to_all) == 2 * moe_layers);
static_assert(sums_of_tensors(one_axis::forward) == 0 && one_axis::forward.count(op::all_reduce) == 1);
static_assert(one_axis::forward.collectives() == 2 * moe_layers + 1);

// Forward, backward and update: four exchanges, nothing gathered, every gradient summed at most once.
static_assert(one_axis::step.count(op::all_to_all) == 4 * moe_layers);
static_assert(one_axis::step.count(op::all_gather) == 0 && one_axis::step.count(op::slice) == 0);
static_assert(sums_of_tensors(one_axis::step) <= trainables(one_axis::step));
// Only parameters that every device holds need a sum: all but wi and wo of the experts; and the load of the
// experts, a metric.
static_assert(sums_of_tensors(one_axis::step) == trainables(one_axis::step) - 2 * moe_layers + 1);
static_assert(one_axis::step.collectives() ==
              one_axis::step.count(op::all_to_all) + one_axis::step.count(op::all_reduce));
static_assert(soundness::is_sound(one_axis::step) && all_updated_in_place(one_axis::step) &&
              only_experts_are_cut(one_axis::step));

// Attention in blocks: the same exchanges, and no tensor has a number for each pair of positions.
constexpr int pairs_of_positions(const gs::plan_view& p) {
  int n = 0;
  for (const gs::value& v : p.values) {
    int positions = 0;
    for (int d = 0; d < v.rank(); ++d) {
      const gs::dim& of = p.dims[std::size_t(v.dims[d])];
      positions += of.what == gs::dim::kind::bound && (of.letter == 'S' || of.letter == 'T');
    }
    n += positions > 1;
  }
  return n;
}
static_assert(one_axis::fused_step.count(op::attention) == 2 + 2 * 2 && one_axis::fused_step.count(op::attention_grad) == 2 + 2 * 2);
static_assert(pairs_of_positions(one_axis::fused_step) == 0 && pairs_of_positions(one_axis::step) > 0);
static_assert(one_axis::fused_step.count(op::all_to_all) == 4 * moe_layers && one_axis::fused_step.count(op::all_gather) == 0);
static_assert(one_axis::fused_step.collectives() == one_axis::step.collectives());
static_assert(soundness::is_sound(one_axis::fused_step) && all_updated_in_place(one_axis::fused_step) &&
              only_experts_are_cut(one_axis::fused_step));

// Two axes: the same exchanges, now within rows of the mesh; the experts' gradients are summed over "data"
// alone.
using two_axes =
    programs<gs::mesh<gs::axis<"data">, gs::axis<"expert">>, P<gs::axes<"data", "expert">, none, none>>;
static_assert(two_axes::step.count(op::all_to_all) == 4 * moe_layers);
static_assert(two_axes::step.count(op::slice) == 0);
// Metrics of a few bytes may be gathered within a row rather than summed over the whole mesh; nothing else
// is.
static_assert(std::all_of(two_axes::step.steps.begin(), two_axes::step.steps.end(), [](const gs::node& s) {
  return s.kind != op::all_gather || two_axes::step.at(s.input(0)).rank() <= 2;
}));
static_assert(two_axes::step.count(op::all_gather) <= 2 * moe_layers);
static_assert(sums_of_tensors(two_axes::step) == trainables(two_axes::step) + 1);
static_assert(soundness::is_sound(two_axes::step) && all_updated_in_place(two_axes::step) &&
              only_experts_are_cut(two_axes::step));

}  // namespace

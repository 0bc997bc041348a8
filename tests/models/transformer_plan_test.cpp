// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The communication of a training step of the mixture-of-experts Transformer. static/models/transformer.cpp has its forward pass as a constant.
#include <gshard/models/transformer.hpp>
#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

#include "../exec/planner.hpp"
#include "../static/soundness.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>

namespace gs = gshard;
namespace nn = gshard::nn;
namespace op = gs::op;
using gs::in, gs::none, gs::P;

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
template <bool Fused>
inline constexpr auto train = [](auto& m, auto source, auto target_in, auto target_out, auto rate) {
  nn::routing_summary routing;
  auto nll = loss_of<Fused>(m, source, target_in, target_out, routing);
  gs::adam{}.minimize(m, m.objective(nll, 0.01), rate);
  return std::tuple{nll, nn::routing_summary::total(routing.load),
                    nn::routing_summary::total(routing.overflow)};
};

int trainables(const gs::plan_view& p) {
  return int(std::count_if(p.parameters.begin(), p.parameters.end(),
                           [](const gs::parameter& q) { return q.trainable; }));
}
int sums_of_tensors(const gs::plan_view& p) {
  int n = 0;
  for (const gs::node& s : p.steps)
    for (int i = 0; s.kind == op::all_reduce && i < s.inputs; ++i) n += p.at(s.input(i)).rank() > 0;
  return n;
}
bool all_updated_in_place(const gs::plan_view& p) {
  return std::all_of(p.parameters.begin(), p.parameters.end(), [&](const gs::parameter& q) {
    return q.updated >= 0 && p.lifetimes[std::size_t(q.updated)].root == q.value;
  });
}
// The experts' matrices are the only sharded parameters. All others are replicated.
bool only_experts_are_cut(const gs::plan_view& p) {
  return std::all_of(p.parameters.begin(), p.parameters.end(), [&](const gs::parameter& q) {
    const bool expert = q.name.view().ends_with("moe.wi") || q.name.view().ends_with("moe.wo");
    return (p.at(q.value).layout.used() != 0) == expert;
  });
}

/// The number of values with a number for each pair of positions.
int pairs_of_positions(const gs::plan_view& p) {
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

template <bool Fused, class Mesh, class Groups>
gs::plan_view step_on() {
  return planned::plan_of<gs::program<train<Fused>, Mesh, in<"GBS", Groups, std::int32_t>, in<"GBT", Groups, std::int32_t>,
                                      in<"GBT", Groups, std::int32_t>, in<"">>>();
}
using line = gs::mesh<gs::axis<"expert">>;
using groups = P<"expert", none, none>;

}  // namespace

TEST_CASE("transformer: forward, backward and update have four exchanges, gather nothing, and sum every gradient at most once") {
  const gs::plan_view step = step_on<false, line, groups>();
  CHECK(step.count(op::all_to_all) == 4 * moe_layers);
  CHECK(step.count(op::all_gather) == 0);
  CHECK(step.count(op::slice) == 0);
  CHECK(sums_of_tensors(step) <= trainables(step));
  // Only replicated parameters need a sum, that is, all except wi and wo of the experts. The experts' load, a metric, needs one as well.
  CHECK(sums_of_tensors(step) == trainables(step) - 2 * moe_layers + 1);
  CHECK(step.collectives() == step.count(op::all_to_all) + step.count(op::all_reduce));
  CHECK(soundness::is_sound(step));
  CHECK(all_updated_in_place(step));
  CHECK(only_experts_are_cut(step));
}

TEST_CASE("transformer: attention in blocks has the same exchanges, and no tensor has a number for each pair of positions") {
  const gs::plan_view step = step_on<false, line, groups>(), fused = step_on<true, line, groups>();
  CHECK(fused.count(op::attention) == 2 + 2 * 2);
  CHECK(fused.count(op::attention_grad) == 2 + 2 * 2);
  CHECK(pairs_of_positions(fused) == 0);
  CHECK(pairs_of_positions(step) > 0);
  CHECK(fused.count(op::all_to_all) == 4 * moe_layers);
  CHECK(fused.count(op::all_gather) == 0);
  CHECK(fused.collectives() == step.collectives());
  CHECK(soundness::is_sound(fused));
  CHECK(all_updated_in_place(fused));
  CHECK(only_experts_are_cut(fused));
}

TEST_CASE("transformer: on two axes, exchanges stay within rows of the mesh, and the experts' gradients are summed over \"data\" alone") {
  const gs::plan_view step = step_on<false, gs::mesh<gs::axis<"data">, gs::axis<"expert">>, P<gs::axes<"data", "expert">, none, none>>();
  CHECK(step.count(op::all_to_all) == 4 * moe_layers);
  CHECK(step.count(op::slice) == 0);
  // Metrics of a few bytes may be gathered within a row instead of summed over the whole mesh. Nothing else is gathered.
  for (const gs::node& s : step.steps) CHECK((s.kind != op::all_gather || step.at(s.input(0)).rank() <= 2));
  CHECK(step.count(op::all_gather) <= 2 * moe_layers);
  CHECK(sums_of_tensors(step) == trainables(step) + 1);
  CHECK(soundness::is_sound(step));
  CHECK(all_updated_in_place(step));
  CHECK(only_experts_are_cut(step));
}

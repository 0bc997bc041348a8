// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The communication of the loss of the mixture-of-experts Transformer. Training steps: tests/models/transformer_plan_test.cpp.
#include <gshard/models/transformer.hpp>
#include <gshard/plan.hpp>

#include "../soundness.hpp"

#include <cstdint>

namespace gs = gshard;
namespace nn = gshard::nn;
namespace op = gs::op;
using gs::in, gs::none, gs::P;

namespace {

constexpr int moe_layers = 2;  // of four: every second one

inline constexpr auto evaluate = [](auto& m, auto source, auto target_in, auto target_out) {
  constexpr nn::transformer_options options{.encoder_layers = 2, .decoder_layers = 2, .dropout = 0.1, .moe = {}};
  nn::routing_summary routing;
  auto table = m.param("embedding", "VM", gs::init::fan_in("M"));
  auto source_mask = nn::real_tokens(m, source), target_mask = nn::real_tokens(m, target_in);
  auto memory = nn::encode<"expert">(m.scope("encoder"), table, source, source_mask, options, routing);
  auto y = nn::decode<"expert">(m.scope("decoder"), table, target_in, target_mask, memory, source_mask, options, routing);
  auto logits = gs::einsum<"GBTM,VM->GBTV">(y, table);
  return gs::sum(gs::cross_entropy(logits, target_out, 0.1) * target_mask) / gs::sum(target_mask);
};

constexpr int sums_of_tensors(const gs::plan_view& p) {
  int n = 0;
  for (const gs::node& s : p.steps)
    for (int i = 0; s.kind == op::all_reduce && i < s.inputs; ++i) n += p.at(s.input(i)).rank() > 0;
  return n;
}

using groups = P<"expert", none, none>;
constexpr gs::plan_view forward = gs::program<evaluate, gs::mesh<gs::axis<"expert">>, in<"GBS", groups, std::int32_t>,
                                              in<"GBT", groups, std::int32_t>, in<"GBT", groups, std::int32_t>>::plan;

// Forward: two exchanges per layer of experts, and the two sums of the loss in one step.
static_assert(forward.count(op::all_to_all) == 2 * moe_layers);
static_assert(sums_of_tensors(forward) == 0 && forward.count(op::all_reduce) == 1);
static_assert(forward.collectives() == 2 * moe_layers + 1);
static_assert(soundness::is_sound(forward));

}  // namespace

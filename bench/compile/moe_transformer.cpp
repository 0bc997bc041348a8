// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Plans a training step of LAYERS encoder and LAYERS decoder layers, every second one a mixture of experts. It shows how the compiler's
// time and memory grow with a model. 36 + 36 layers should compile in 30 s and 2 GB with g++ 12.
#include <gshard/models/transformer.hpp>
#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

#include <cstdint>

#ifndef LAYERS
#define LAYERS 36
#endif

namespace gs = gshard;
using gs::none;
using gs::P;

inline constexpr auto training_step = [](auto& m, auto source, auto target_in, auto target_out, auto rate) {
  const gs::nn::transformer_options options{.encoder_layers = LAYERS, .decoder_layers = LAYERS, .dropout = 0.1, .moe = {}};
  gs::nn::routing_summary routing;
  const auto table = m.param("embedding", "VM", gs::init::fan_in("M"));
  const auto source_mask = gs::nn::real_tokens(m, source), target_mask = gs::nn::real_tokens(m, target_in);
  const auto memory = gs::nn::encode<"expert">(m.scope("encoder"), table, source, source_mask, options, routing);
  const auto y = gs::nn::decode<"expert">(m.scope("decoder"), table, target_in, target_mask, memory, source_mask, options, routing);
  const auto logits = gs::einsum<"GBTM,VM->GBTV">(y, table);
  const auto loss = gs::sum(gs::cross_entropy(logits, target_out, 0.1) * target_mask) / gs::sum(target_mask);
  gs::adam{}.minimize(m, m.objective(loss, 0.3), rate);
  return loss;
};

template <gs::fixed_string Letters>
using tokens = gs::in<Letters, P<"expert", none, none>, std::int32_t>;
using program = gs::program<training_step, gs::mesh<gs::axis<"expert">>, tokens<"GBS">, tokens<"GBT">, tokens<"GBT">, gs::in<"">>;

static_assert(program::plan.count(gs::op::all_to_all) == 4 * (LAYERS / 2 * 2));  // 2 forwards, 2 backwards in every second layer

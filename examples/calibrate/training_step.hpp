// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/gshard.hpp>

#include <cstdint>

// The training step for calibration and measurement: an encoder-decoder Transformer, with a mixture of experts in every second layer or
// without experts; loss, gradients, Adam.
namespace calibrate {

using expert_mesh = gshard::mesh<gshard::axis<"expert">>;

template <int Layers, bool Dropout>
inline constexpr gshard::nn::transformer_options transformer_model{.encoder_layers = Layers,
                                                                   .decoder_layers = Layers,
                                                                   .dropout = Dropout ? 0.1 : 0,
                                                                   .moe = {.routing = {.k = 2, .slots = gshard::capacity{2}}}};

template <const gshard::nn::transformer_options& Model, gshard::gradient_wire Wire = gshard::gradient_wire::full>
inline constexpr auto transformer_step = [](auto& m, auto source, auto target_in, auto target_out, auto rate) {
  namespace gs = gshard;
  gs::nn::routing_summary routing;
  const auto table = m.param("embedding", "VM", gs::init::fan_in("M"));
  const auto source_mask = gs::nn::real_tokens(m, source), target_mask = gs::nn::real_tokens(m, target_in);
  const auto memory = gs::nn::encode<"expert">(m.scope("encoder"), table, source, source_mask, Model, routing);
  const auto y = gs::nn::decode<"expert">(m.scope("decoder"), table, target_in, target_mask, memory, source_mask, Model, routing);
  const auto loss = gs::mean(gs::cross_entropy(gs::einsum<"GBTM,VM->GBTV">(y, table), target_out, 0.1));
  constexpr gs::adam optimizer{.wire = Wire};
  if constexpr (Model.dense) optimizer.minimize(m, loss, rate);
  else optimizer.minimize(m, loss + 0.01 * m.auxiliary(), rate);
  return loss;
};
template <gshard::fixed_string Letters>
using token_ids = gshard::in<Letters, gshard::P<"expert", gshard::none, gshard::none>, std::int32_t>;
template <const gshard::nn::transformer_options& Model, class... Options>
using transformer_program = gshard::program<transformer_step<Model>, expert_mesh, token_ids<"GBS">, token_ids<"GBT">,
                                            token_ids<"GBT">, gshard::in<"">, Options...>;

}  // namespace calibrate

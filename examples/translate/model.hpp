// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mesh.hpp"

#include <gshard/models/transformer.hpp>
#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

#include <cstdint>
#include <tuple>

// The model, written once over whole tensors. Groups are sharded over the devices by the inputs' specs, experts by the annotation inside
// nn::moe. All other shardings are propagated.
namespace translate {

using gs::none;
using gs::P;

inline constexpr gs::nn::transformer_options training{.encoder_layers = 2, .decoder_layers = 2, .dropout = 0.1, .moe = {}};
/// The same model without random numbers.
inline constexpr gs::nn::transformer_options inference{
    .encoder_layers = 2, .decoder_layers = 2, .dropout = 0, .moe = {.routing = {.k = 2, .slots = gs::capacity{2}}}};

/// The decoder for one position at a time. Each of up to 8 experts has slots for all tokens.
inline constexpr gs::nn::transformer_options step_by_step{
    .encoder_layers = 2, .decoder_layers = 2, .dropout = 0, .moe = {.routing = {.k = 2, .slots = gs::capacity{8}}}};

inline constexpr double label_smoothing = 0.1;
/// Weight of the auxiliary loss, on the paper's scale (1 / E^2 of the scale in most later systems).
inline constexpr double balance_weight = 0.3;

constexpr gs::symbol embedding_table(const gs::parameter_scope& m) { return m.param("embedding", "VM", gs::init::fan_in("M")); }

/// One training step: loss, gradients and update. Returns loss per token, tokens, auxiliary loss, tokens per expert [E], and choices that
/// full experts refused.
inline constexpr auto training_step = [](auto& m, auto source, auto target_in, auto target_out, auto rate) {
  gs::nn::routing_summary routing;
  const auto table = embedding_table(m);
  const auto source_mask = gs::nn::real_tokens(m, source), target_mask = gs::nn::real_tokens(m, target_in);
  const auto memory = gs::nn::encode<"expert">(m.scope("encoder"), table, source, source_mask, training, routing);
  const auto y = gs::nn::decode<"expert">(m.scope("decoder"), table, target_in, target_mask, memory, source_mask, training, routing);
  const auto logits = gs::einsum<"GBTM,VM->GBTV">(y, table);
  const auto tokens = gs::sum(target_mask);
  const auto loss = gs::sum(gs::cross_entropy(logits, target_out, label_smoothing) * target_mask) / tokens;
  const auto balance = m.auxiliary();
  gs::adam{}.minimize(m, loss + balance_weight * balance, rate);
  return std::tuple{loss, tokens, balance, gs::nn::routing_summary::total(routing.load), gs::nn::routing_summary::total(routing.overflow)};
};

/// Encodes source ids. Caches keys and values for the decoder's attention to them.
inline constexpr auto encoding = [](auto& m, auto source) {
  gs::nn::routing_summary routing;
  const auto mask = gs::nn::real_tokens(m, source);
  const auto memory = gs::nn::encode<"expert">(m.scope("encoder"), embedding_table(m), source, mask, inference, routing);
  gs::nn::start_decoding(m.scope("decoder"), memory, step_by_step);
  return memory;
};

/// Log-probabilities [G,B,V] of the token after the one at `position`. Row b of a group continues the former row order[g,b].
inline constexpr auto next_token = [](auto& m, auto source, auto last, auto position, auto order) {
  const auto table = embedding_table(m);
  const auto mask = gs::nn::real_tokens(m, source);
  const auto y = gs::nn::decode_step<"expert">(m.scope("decoder"), table, last, position, mask, step_by_step, order);
  const auto logits = gs::einsum<"GBM,VM->GBV">(y, table);
  return logits - gs::logsumexp<"GBV->GB">(logits);
};

template <gs::fixed_string Letters, class T = float>
using cut_by_group = gs::in<Letters, P<"expert", none, none>, T>;

using training_program = gs::program<training_step, mesh, cut_by_group<"GBS", std::int32_t>, cut_by_group<"GBT", std::int32_t>,
                                     cut_by_group<"GBT", std::int32_t>, gs::in<"">>;
using encoding_program = gs::program<encoding, mesh, cut_by_group<"GBS", std::int32_t>>;
using one_per_row = gs::in<"GB", P<"expert", none>, std::int32_t>;
using next_token_program =
    gs::program<next_token, mesh, cut_by_group<"GBS", std::int32_t>, one_per_row, gs::in<"", std::int32_t>, one_per_row>;
static_assert(next_token_program::plan.count(gs::op::all_to_all) == 2 && next_token_program::plan.collectives() == 2);

}  // namespace translate

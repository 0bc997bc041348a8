// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Models have one plan at compile time and at run time: their verbs append nodes in one order. Arguments of one call are evaluated in any
// order. Therefore models store tensors in variables before they pass several to one call.
#include "../exec/same_plan.hpp"

#include <gshard/models/language_model.hpp>
#include <gshard/models/pipeline.hpp>
#include <gshard/models/transformer.hpp>
#include <gshard/train/accumulate.hpp>
#include <gshard/train/adam.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>

namespace gs = gshard;
namespace nn = gshard::nn;
using gs::in, gs::none, gs::P;

namespace {

using line = gs::mesh<gs::axis<"expert">>;
template <gs::fixed_string Letters>
using ids = in<Letters, P<"expert", none, none>, std::int32_t>;
const gs::dims extents{{'G', 4}, {'B', 2}, {'S', 5}, {'T', 6}, {'M', 8}, {'H', 2},
                       {'R', 2}, {'D', 4}, {'F', 6}, {'E', 4}, {'V', 9}, {'L', 9}};

inline constexpr auto language_model = [](auto& m, auto tokens, auto labels, auto rate) {
  nn::routing_summary routing;
  constexpr nn::language_model_options options{
      .layers = 1, .moe_every = 1, .moe = {.routing = {.balance = gs::balance::bias(0.1)}, .swiglu = true}, .dropout = 0.1};
  const auto loss = nn::token_loss(nn::language_model<"expert">(m, tokens, options, routing), labels);
  gs::adam{.clip_norm = 1}.minimize(m, m.objective(loss, 0.1), rate);
  return loss;
};
inline constexpr auto decoding = [](auto& m, auto tokens, auto position) {
  const auto logits = nn::language_model_step<"expert">(m, tokens, position, {.moe = {.swiglu = true}});
  return nn::sample_token(m, logits, 2);
};

inline constexpr auto translation = [](auto& m, auto source, auto target, auto next, auto rate) {
  constexpr nn::transformer_options options{.encoder_layers = 2, .decoder_layers = 1, .dropout = 0.1, .moe = {}};
  nn::routing_summary routing;
  const auto table = m.param("embedding", "VM", gs::init::fan_in("M"));
  const auto source_mask = nn::real_tokens(m, source), target_mask = nn::real_tokens(m, target);
  const auto memory = nn::encode<"expert">(m.scope("encoder"), table, source, source_mask, options, routing);
  const auto y = nn::decode<"expert">(m.scope("decoder"), table, target, target_mask, memory, source_mask, options, routing);
  const auto of_tokens = gs::cross_entropy(gs::einsum<"GBTM,VM->GBTV">(y, table), next, 0.1) * target_mask;
  const auto loss = gs::sum(of_tokens);
  gs::adam{}.minimize(m, m.objective(loss, 0.3), rate);
  return loss;
};
inline constexpr auto translation_step = [](auto& m, auto memory, auto source, auto now, auto position, auto order) {
  constexpr nn::transformer_options options{.moe = {}, .param_dtype = gs::dtype::bf16, .cache_dtype = gs::dtype::bf16};
  const auto table = m.param("embedding", "VM", gs::init::fan_in("M")), mask = nn::real_tokens(m, source);
  nn::start_decoding(m.scope("decoder"), memory, options);
  return nn::decode_step<"expert">(m.scope("decoder"), table, now, position, mask, options, order);
};
using translator = gs::program<translation, line, ids<"GBS">, ids<"GBT">, ids<"GBT">, in<"">>;

inline constexpr auto sampling_layer = [](auto& m, auto x, auto mask) {
  const nn::moe_result r = nn::moe<"expert">(m, x, mask, {.routing = {.choice = gs::choice::sampled_second}});
  const auto busiest = nn::measure_balance(r.demand, r.overflow).busiest;
  return gs::sum(r.y * r.y) + busiest;
};
inline constexpr auto in_micro_batches = [](auto& m, auto x, auto wanted) {
  const auto w = m.param("w", "M", gs::init::fan_in("M"));
  return gs::accumulate(m, [&](auto part, auto label) { return gs::mean(gs::einsum<"BM,M->B">(part, w) - label); }, x, wanted).loss;
};

inline constexpr auto rounds = [](auto& m, auto x, auto w) {
  const auto stage = [](gs::symbol y, gs::symbol v) {
    return gs::map<[](auto u) { return gs::tanh(u); }>(gs::einsum<"SBF,SFG->SBG">(y, v));
  };
  const auto y = nn::pipeline(m, {.repeats = 2}, stage, x, w);
  return gs::gradients(gs::sum(y * y), std::array<gs::symbol, 1>{w})[0];
};

}  // namespace

TEST_CASE("a language model, its training and its decoding, is planned at run time as by the compiler") {
  CHECK(same_plan::at_run_time<gs::program<language_model, line, ids<"GBT">, ids<"GBT">, in<"">>>({{2}, extents}) == "");
  CHECK(same_plan::at_run_time<gs::program<decoding, line, in<"GB", P<"expert", none>, std::int32_t>, in<"", void, std::int32_t>>>(
            {{2}, extents}) == "");
}

TEST_CASE("an encoder and a decoder, their training and their decoding, are planned at run time as by the compiler") {
  using one_position = in<"GB", P<"expert", none>, std::int32_t>;
  CHECK(same_plan::at_run_time<translator>({{2}, extents}) == "");
  CHECK(same_plan::at_run_time<gs::program<translation_step, line, in<"GBSM", P<"expert", none, none, none>>, ids<"GBS">, one_position,
                                           in<"", void, std::int32_t>, one_position>>({{2}, extents}) == "");
}

TEST_CASE("sampled experts, measures of balance and micro-batches are planned at run time as by the compiler") {
  CHECK(same_plan::at_run_time<gs::program<sampling_layer, line, in<"GSM", P<"expert", none, none>>, in<"GS", P<"expert", none>>>>(
            {{2}, extents}) == "");
  CHECK(same_plan::at_run_time<gs::program<in_micro_batches, line, in<"NBM", P<none, "expert", none>>, in<"NB", P<none, "expert">>,
                                           gs::extent<'N', 2>>>({{2}, {{'N', 2}, {'B', 4}, {'M', 3}}}) == "");
}

TEST_CASE("a pipeline with rounds is planned at run time as by the compiler") {
  using stages = gs::program<rounds, gs::mesh<gs::axis<"stage", 2>>, in<"MBF">, in<"RSFF", P<none, "stage", none, none>>,
                             gs::extent<'M', 4>, gs::extent<'R', 2>, gs::extent<'S', 2>>;
  CHECK(same_plan::at_run_time<stages>({{2}, {{'M', 4}, {'B', 3}, {'F', 2}, {'R', 2}, {'S', 2}}}) == "");
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The communication of a decoder-only language model in training and in decoding, and the names of its parameters.
// static/models/language_model.cpp has the training of one layer as a constant.
#include <gshard/models/language_model.hpp>
#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

#include "../exec/planner.hpp"
#include "../static/soundness.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gs = gshard;
namespace nn = gshard::nn;
namespace op = gs::op;
using gs::in, gs::none, gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"data">, gs::axis<"expert">>;
inline constexpr nn::language_model_options options{.layers = 4, .moe = {.swiglu = true}, .tied_head = false};

inline constexpr auto train = [](auto& m, auto ids, auto labels, auto rate) {
  nn::routing_summary routing;
  const auto loss = nn::token_loss(nn::language_model<"expert">(m, ids, options, routing), labels);
  gs::adam{}.minimize(m, m.objective(loss, 0.1), rate);
  return loss;
};
inline constexpr auto decode = [](auto& m, auto ids, auto position) {
  return nn::sample_token(m, nn::language_model_step<"expert">(m, ids, position, options), 0.7);
};
inline constexpr auto continue_rows = [](auto& m, auto ids, auto position, auto order) {
  return nn::language_model_step<"expert">(m, ids, position, options, order);
};
inline constexpr auto all = gs::axes<"data", "expert">;
using sequences = in<"GBT", P<all, none, none>, std::int32_t>;
using one_position = in<"GB", P<all, none>, std::int32_t>;
using position_in = in<"", void, std::int32_t>;
template <auto Model, class... Inputs>
gs::plan_view plan_on_mesh() {
  return planned::plan_of<gs::program<Model, mesh, Inputs...>>();
}
gs::plan_view training_plan() { return plan_on_mesh<train, sequences, sequences, in<"">>(); }
gs::plan_view decoding_plan() { return plan_on_mesh<decode, one_position, position_in>(); }

/// Checks that there are two exchanges in each of the two layers of experts, and no other collectives.
void check_sends_tokens_alone(const gs::plan_view& p) {
  CHECK(p.count(op::all_to_all) == 2 * 2);
  CHECK(p.collectives() == 2 * 2);
  CHECK(soundness::is_sound(p));
}
bool has(const gs::plan_view& p, std::string_view name) {
  return std::any_of(p.parameters.begin(), p.parameters.end(), [&](const gs::parameter& q) { return q.name.view() == name; });
}

}  // namespace

TEST_CASE("language_model: a training step has four exchanges in a layer of experts, and gathers nothing") {
  const gs::plan_view step = training_plan();
  CHECK(step.count(op::all_to_all) == 4 * 2);
  CHECK(step.count(op::all_gather) == 0);
  CHECK(soundness::is_sound(step));
}

TEST_CASE("language_model: the names of parameters") {
  const gs::plan_view step = training_plan();
  for (const std::string_view name :
       {"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight", "model.layers.3.self_attn.q_proj.weight",
        "model.layers.3.post_attention_layernorm.weight", "model.layers.2.mlp.gate_proj.weight",
        "model.layers.3.block_sparse_moe.wi_gate"}) {
    CAPTURE(name);
    CHECK(has(step, name));
  }
  CHECK(!has(step, "model.layers.2.self_attn.key_cache"));
  CHECK(has(decoding_plan(), "model.layers.2.self_attn.key_cache"));
}

TEST_CASE("language_model_step: caches are sharded as the sequences are; decoding sends tokens to experts and back, nothing else") {
  const gs::plan_view next = decoding_plan();
  check_sends_tokens_alone(next);
  int caches = 0;  // keys and values are appended in place
  for (const gs::parameter& q : next.parameters) {
    if (!q.is_cache) continue;
    ++caches;
    CHECK(next.lifetimes[std::size_t(q.updated)].root == q.value);
  }
  CHECK(caches == 2 * 4);
}

namespace {

inline constexpr auto prompt = [](auto& m, auto ids, auto position) {
  return nn::language_model_step<"expert">(m, ids, position, options);
};

}  // namespace

TEST_CASE("language_model_step: a prompt in one step sends as often as one token") {
  check_sends_tokens_alone(plan_on_mesh<prompt, sequences, position_in>());
}

TEST_CASE("language_model_step: rows change within their group, which one device holds; with sharded sequences, caches travel") {
  check_sends_tokens_alone(plan_on_mesh<continue_rows, one_position, position_in, one_position>());
  using one_row = in<"GB", P<none, all>, std::int32_t>;
  CHECK(plan_on_mesh<continue_rows, one_row, position_in, one_row>().collectives() > 2 * 2);
}

namespace {

template <int MoeEvery>
inline constexpr auto long_sequence = [](auto& m, auto ids) {
  nn::routing_summary routing;
  return nn::language_model<"data">(m, ids, {.layers = 2, .moe_every = MoeEvery, .moe = {.swiglu = true}, .sequence_axis = "seq"}, routing);
};
using ring = gs::mesh<gs::axis<"data">, gs::axis<"seq", 4>>;
template <int MoeEvery>
gs::plan_view plan_in_ring() {
  return planned::plan_of<gs::program<long_sequence<MoeEvery>, ring, in<"GBT", P<"data", none, "seq">, std::int32_t>>>();
}

}  // namespace

TEST_CASE("language_model: keys and values of a sequence that is sharded over four devices travel three times in each layer") {
  const gs::plan_view without = plan_in_ring<0>(), with = plan_in_ring<2>();
  CHECK(without.count(op::collective_permute) == 2 * 2 * 3);
  CHECK(without.collectives() == 2 * 2 * 3);
  CHECK(soundness::is_sound(without));
  // A layer with experts has two more exchanges: its tokens are sharded by groups.
  CHECK(with.count(op::all_to_all) == 4);
  CHECK(with.collectives() == 2 * 2 * 3 + 4);
  CHECK(soundness::is_sound(with));
}

namespace {

inline constexpr nn::language_model_options noisy{
    .layers = 4,
    .moe = {.routing = {.choice = gs::choice::sampled_second, .balance = gs::balance::bias(), .jitter = 0.1, .gumbel = 1}, .swiglu = true},
    .tied_head = false,
    .dropout = 0.1};
inline constexpr nn::language_model_options in_bf16{.layers = 4, .moe = {.swiglu = true}, .cache_dtype = gs::dtype::bf16};
template <nn::language_model_options O>
constexpr auto one_step = [](auto& m, auto ids, auto position) { return nn::language_model_step<"expert">(m, ids, position, O); };
template <nn::language_model_options O>
constexpr auto whole = [](auto& m, auto ids) {
  nn::routing_summary routing;
  return nn::language_model<"expert">(m, ids, O, routing);
};
bool draws(const gs::plan_view& p) { return p.count(op::random) > 0; }
bool updates(const gs::plan_view& p, std::string_view name) {
  return std::any_of(p.parameters.begin(), p.parameters.end(),
                     [&](const gs::parameter& q) { return q.name.view().ends_with(name) && q.updated >= 0; });
}

}  // namespace

TEST_CASE("language_model_step: whatever the options for training, it has no random number, no other collective, and no update of a bias") {
  const gs::plan_view trained = plan_on_mesh<whole<noisy>, sequences>();
  CHECK(draws(trained));  // so that the next checks are not trivial
  CHECK(updates(trained, ".bias"));
  const gs::plan_view step = plan_on_mesh<one_step<noisy>, one_position, position_in>();
  check_sends_tokens_alone(step);
  CHECK(!draws(step));
  CHECK(!updates(step, ".bias"));
  CHECK(updates(step, ".key_cache"));
  const gs::plan_view evaluated = plan_on_mesh<whole<nn::for_evaluation(noisy)>, sequences>();
  CHECK(!draws(evaluated));
  CHECK(!updates(evaluated, ".bias"));
}

TEST_CASE("language_model_step: caches in bf16 alone have this type, and nothing else travels") {
  const gs::plan_view step = plan_on_mesh<one_step<in_bf16>, one_position, position_in>();
  for (const gs::parameter& p : step.parameters)
    CHECK((step.values[std::size_t(p.value)].type == gs::dtype::bf16) == p.name.view().ends_with("_cache"));
  check_sends_tokens_alone(step);
}

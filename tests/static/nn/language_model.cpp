// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a decoder-only language model sends in training and in decoding, and the names of its parameters.
#include <gshard/nn/language_model.hpp>
#include <gshard/optim/adam.hpp>
#include <gshard/plan.hpp>

#include "../soundness.hpp"
#include "../tracing.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace gs = gshard;
namespace nn = gshard::nn;
using gs::in, gs::none, gs::op, gs::P;

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
constexpr gs::plan_view step = gs::program<train, mesh, sequences, sequences, in<"">>::plan;
constexpr gs::plan_view next = gs::program<decode, mesh, in<"GB", P<all, none>, std::int32_t>, in<"", void, std::int32_t>>::plan;
using one_position = in<"GB", P<all, none>, std::int32_t>;
constexpr gs::plan_view beams = gs::program<continue_rows, mesh, one_position, in<"", void, std::int32_t>, one_position>::plan;

static_assert(step.count(op::all_to_all) == 4 * 2 && step.count(op::all_gather) == 0);
static_assert(soundness::is_sound(step));
// Caches are sharded as the sequences are. So decoding sends tokens to their experts and back, and nothing else.
static_assert(next.count(op::all_to_all) == 2 * 2 && next.collectives() == 2 * 2);
static_assert(soundness::is_sound(next));
// Keys and values are added in the memory of the caches.
constexpr bool extends_caches_in_place(const gs::plan_view& p) {
  return std::all_of(p.parameters.begin(), p.parameters.end(), [&](const gs::parameter& q) {
    return !q.is_cache || p.lifetimes[std::size_t(q.updated)].root == q.value;
  });
}
static_assert(extends_caches_in_place(next));
// A prompt in one step sends as often as one token.
inline constexpr auto prompt = [](auto& m, auto ids, auto position) {
  return nn::language_model_step<"expert">(m, ids, position, options);
};
constexpr gs::plan_view prefill = gs::program<prompt, mesh, sequences, in<"", void, std::int32_t>>::plan;
static_assert(prefill.count(op::all_to_all) == 2 * 2 && prefill.collectives() == 2 * 2);
static_assert(soundness::is_sound(prefill));
// A sequence that is sharded over four devices: keys and values travel three times in each layer, and nothing else does.
template <int MoeEvery>
inline constexpr auto long_sequence = [](auto& m, auto ids) {
  nn::routing_summary routing;
  return nn::language_model<"data">(m, ids, {.layers = 2, .moe_every = MoeEvery, .moe = {.swiglu = true}, .sequence_axis = "seq"}, routing);
};
using ring = gs::mesh<gs::axis<"data">, gs::axis<"seq", 4>>;
template <int MoeEvery>
constexpr gs::plan_view in_ring = gs::program<long_sequence<MoeEvery>, ring, in<"GBT", P<"data", none, "seq">, std::int32_t>>::plan;
static_assert(in_ring<0>.count(op::collective_permute) == 2 * 2 * 3 && in_ring<0>.collectives() == 2 * 2 * 3);
// A layer with experts has two more exchanges: its tokens are sharded by groups.
static_assert(in_ring<2>.count(op::all_to_all) == 4 && in_ring<2>.collectives() == 2 * 2 * 3 + 4);
static_assert(soundness::is_sound(in_ring<0>) && soundness::is_sound(in_ring<2>));
// Rows change within their group, which one device holds.
static_assert(beams.count(op::all_to_all) == 2 * 2 && beams.collectives() == 2 * 2);
static_assert(soundness::is_sound(beams));
using one_row = in<"GB", P<none, all>, std::int32_t>;  // with its sequences sharded, caches travel
static_assert(gs::program<continue_rows, mesh, one_row, in<"", void, std::int32_t>, one_row>::plan.collectives() > 2 * 2);
// Decoding does not train: whatever the options for training, its plan has no random number, no other collective, and no update of a bias.
inline constexpr nn::language_model_options noisy{
    .layers = 4,
    .moe = {.second = gs::second_expert::sampled, .swiglu = true, .router = {.balance = nn::balance::bias, .jitter = 0.1, .gumbel = 1}},
    .tied_head = false,
    .dropout = 0.1};
template <nn::language_model_options O>
constexpr auto one_step = [](auto& m, auto ids, auto position) { return nn::language_model_step<"expert">(m, ids, position, O); };
template <nn::language_model_options O>
constexpr auto whole = [](auto& m, auto ids) {
  nn::routing_summary routing;
  return nn::language_model<"expert">(m, ids, O, routing);
};
template <nn::language_model_options O>
constexpr const gs::plan_view& step_of = gs::program<one_step<O>, mesh, one_position, in<"", void, std::int32_t>>::plan;
template <nn::language_model_options O>
constexpr const gs::plan_view& whole_of = gs::program<whole<O>, mesh, sequences>::plan;
constexpr bool draws(const gs::plan_view& p) { return p.count(op::random) > 0; }
constexpr bool updates(const gs::plan_view& p, std::string_view name) {
  return std::any_of(p.parameters.begin(), p.parameters.end(),
                     [&](const gs::parameter& q) { return q.name.view().ends_with(name) && q.updated >= 0; });
}
static_assert(draws(whole_of<noisy>) && updates(whole_of<noisy>, ".bias"));  // so the next lines can fail
static_assert(!draws(step_of<noisy>) && !updates(step_of<noisy>, ".bias") && updates(step_of<noisy>, ".key_cache"));
static_assert(step_of<noisy>.count(op::all_to_all) == 2 * 2 && step_of<noisy>.collectives() == 2 * 2);
static_assert(!draws(whole_of<nn::for_evaluation(noisy)>) && !updates(whole_of<nn::for_evaluation(noisy)>, ".bias"));

// Caches in bf16: they alone have this type, and nothing else travels.
inline constexpr nn::language_model_options in_bf16{.layers = 4, .moe = {.swiglu = true}, .cache_dtype = gs::dtype::bf16};
constexpr const gs::plan_view& step_in_bf16 = step_of<in_bf16>;
static_assert(std::all_of(step_in_bf16.parameters.begin(), step_in_bf16.parameters.end(), [](const gs::parameter& p) {
  return (step_in_bf16.values[std::size_t(p.value)].type == gs::dtype::bf16) == p.name.view().ends_with("_cache");
}));
static_assert(step_in_bf16.count(op::all_to_all) == 2 * 2 && step_in_bf16.collectives() == 2 * 2);
static_assert(soundness::is_sound(step_in_bf16));

template <gs::fixed_string Letters, gs::dtype Type>
inline constexpr gs::fault fault_of_order = tracing::problem_of([](auto& b, auto& m) {
                                       nn::language_model_step<"expert">(m, tracing::input(b, "GB", gs::dtype::i32),
                                                                         tracing::input(b, "", gs::dtype::i32), {.moe_every = 0},
                                                                         tracing::input(b, Letters.view(), Type));
                                     }).what;
static_assert(fault_of_order<"GB", gs::dtype::i32> == gs::fault::nothing);
static_assert(fault_of_order<"GB", gs::dtype::f32> == gs::fault::wrong_type);
static_assert(fault_of_order<"B", gs::dtype::i32> == gs::fault::dims_differ);
static_assert(fault_of_order<"GC", gs::dtype::i32> == gs::fault::dims_differ);
// What is wrong before token_loss is the fault of the program.
static_assert(tracing::problem_of([](auto& b, auto& m) {
                nn::routing_summary routing;
                const auto logits = nn::language_model<"expert">(m, tracing::input(b, "GBT"), {.moe_every = 0}, routing);
                nn::token_loss(logits, tracing::input(b, "GBT", gs::dtype::i32));
              }).what == gs::fault::wrong_type);

constexpr bool has(const gs::plan_view& p, std::string_view name) {
  return std::any_of(p.parameters.begin(), p.parameters.end(), [&](const gs::parameter& q) { return q.name.view() == name; });
}
static_assert(has(step, "model.embed_tokens.weight") && has(step, "model.norm.weight") && has(step, "lm_head.weight"));
static_assert(has(step, "model.layers.3.self_attn.q_proj.weight") && has(step, "model.layers.3.post_attention_layernorm.weight"));
static_assert(has(step, "model.layers.2.mlp.gate_proj.weight") && has(step, "model.layers.3.block_sparse_moe.wi_gate"));
static_assert(!has(step, "model.layers.2.self_attn.key_cache") && has(next, "model.layers.2.self_attn.key_cache"));

// Options of no meaning.
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
template <auto Temperature>  // a function: clang 16 takes no number
constexpr bool has_no_samples = tracing::out_of_range("sample_token", "temperature", {}, [](auto& b, auto& m) {
  nn::sample_token(m, tracing::input(b, "GBV"), Temperature());
});
static_assert(has_no_samples<[] { return -1.0; }> && has_no_samples<[] { return nan; }>);
constexpr bool refuses_odd_heads = [] {
  const gs::diagnostic d = tracing::problem_of([](auto& b, auto&) {
    b.options.known.set('D', 5);
    nn::rotary(tracing::input(b, "TD"), tracing::input(b, "T", gs::dtype::i32), 0);
  });
  return d.what == gs::fault::odd_extent && d.subject.view() == "rotary" && d.word.view() == "D" && d.first == 5;
}();
static_assert(refuses_odd_heads);
template <auto Base>
constexpr bool rotates_nothing = tracing::out_of_range("rotary", "base", {}, [](auto& b, auto&) {
  nn::rotary(tracing::input(b, "TD"), tracing::input(b, "T", gs::dtype::i32), 0, Base());
});
static_assert(rotates_nothing<[] { return 0.0; }> && rotates_nothing<[] { return -2.0; }> && rotates_nothing<[] { return nan; }>);

}  // namespace

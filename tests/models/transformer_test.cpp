// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/models/transformer.hpp>

#include <gshard/eager/reshard.hpp>
#include <gshard/ops/random/random.hpp>
#include <gshard/train/adam.hpp>

#include <doctest/doctest.h>

#include "../exec/planned_program.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

namespace gs = gshard;
using gs::in, gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"expert">>;

namespace {

template <gs::remat_policy Saved, bool Fused = false>
constexpr auto training_step = [](auto& m, auto source, auto target, auto next, auto rate) {
  constexpr gs::nn::transformer_options options{
      .encoder_layers = 2, .decoder_layers = 2, .dropout = 0.1, .moe = {}, .saved = Saved, .fused_attention = Fused};
  gs::nn::routing_summary routing;
  const auto table = m.param("embedding", "VM", gs::init::fan_in("M"));
  const auto source_mask = gs::nn::real_tokens(m, source), target_mask = gs::nn::real_tokens(m, target);
  const auto memory =
      gs::nn::encode<"expert">(m.scope("encoder"), table, source, source_mask, options, routing);
  const auto y = gs::nn::decode<"expert">(m.scope("decoder"), table, target, target_mask, memory, source_mask,
                                          options, routing);
  const auto loss =
      gs::sum(gs::cross_entropy(gs::einsum<"GBTM,VM->GBTV">(y, table), next, 0.1) * target_mask) /
      gs::sum(target_mask);
  gs::adam{}.minimize(m, m.objective(loss, 0.3), rate);
  return std::tuple{loss, gs::nn::routing_summary::total(routing.load)};
};
template <gs::fixed_string Letters>
using ids = in<Letters, P<"expert", none, none>, std::int32_t>;
template <gs::remat_policy Saved, bool Fused = false>
using program = gs::program<training_step<Saved, Fused>, mesh, ids<"GBS">, ids<"GBT">, ids<"GBT">, in<"">>;

constexpr std::size_t G = 8, B = 2, S = 5, T = 6, V = 13;
const gs::dims extents{{'G', G}, {'B', B},  {'S', S}, {'T', T}, {'M', 16}, {'H', 2},
                       {'D', 8}, {'F', 24}, {'E', 4}, {'V', V}, {'L', 10}};

struct history {
  std::vector<double> losses;
  std::vector<float> load;
  std::int64_t bytes = 0;  // of activations and gradients
};

template <gs::remat_policy Saved = gs::remat_policy::everything, bool Fused = false>
history train(int devices, int steps) {
  const auto on = gs::simulate<mesh>(devices);
  planned::executable<program<Saved, Fused>> run(on, extents, gs::parameter_store(on, 7));
  run.seed = 11;
  history h;
  for (int i = 0; i < steps; ++i) {
    // The target repeats the source, which counts from its first word. Lengths vary.
    std::vector<std::int32_t> source(G * B * S, 0), target(G * B * T, 0), next(G * B * T, -1);
    for (std::size_t row = 0; row < G * B; ++row) {
      const std::size_t length = 2 + (row + std::size_t(i)) % (S - 1);
      const auto first = std::int32_t((row * 5 + std::size_t(i) * 3) % 9);
      for (std::size_t k = 0; k < length; ++k) {
        source[row * S + k] = 2 + (first + std::int32_t(k)) % 11;
        target[row * T + k + 1] = source[row * S + k];
        next[row * T + k] = source[row * S + k];
      }
      target[row * T] = 1;
      next[row * T + length] = 1;
    }
    const planned::results made = run(source, target, next, std::vector{3e-3f});
    h.losses.push_back(made.item());
    h.load = made.floats(1);
  }
  h.bytes = run.executor().arena_bytes();
  return h;
}

}  // namespace

TEST_CASE("transformer: training lowers the loss, alike on any number of devices") {
  constexpr int steps = 20;
  const history one = train(1, steps);
  CHECK(one.losses.front() == doctest::Approx(std::log(double(V))).epsilon(0.5));
  CHECK(one.losses.back() < 0.8 * one.losses.front());
  for (const int devices : {2, 3, 4, 8}) {
    CAPTURE(devices);
    const history h = train(devices, steps);
    for (std::size_t i = 0; i < std::size_t(steps); ++i)
      CHECK(h.losses[i] == doctest::Approx(one.losses[i]).epsilon(1e-4));
  }
}

TEST_CASE("transformer: layers that recompute their activations have the same bits, and need less memory") {
  for (const int devices : {1, 4}) {
    CAPTURE(devices);
    const history kept = train(devices, 3), nothing = train<gs::remat_policy::nothing>(devices, 3),
                  products = train<gs::remat_policy::products>(devices, 3);
    CHECK(nothing.losses == kept.losses);
    CHECK(nothing.load == kept.load);
    CHECK(products.losses == kept.losses);
    CHECK(nothing.bytes < products.bytes);
    CHECK(products.bytes < kept.bytes);
  }
}

TEST_CASE("transformer: with attention in blocks, it trains as with all scores, with the same dropout") {
  for (const int devices : {1, 3}) {
    CAPTURE(devices);
    const history scores = train(devices, 5), blocks = train<gs::remat_policy::everything, true>(devices, 5),
                  recomputed = train<gs::remat_policy::nothing, true>(devices, 5);
    for (std::size_t i = 0; i < scores.losses.size(); ++i) CHECK(blocks.losses[i] == doctest::Approx(scores.losses[i]).epsilon(1e-4));
    CHECK(recomputed.losses == blocks.losses);
    CHECK(recomputed.bytes < blocks.bytes);
  }
}

namespace {

constexpr gs::nn::transformer_options training{
    .dropout = 0.2,
    .moe = {.routing = {.balance = gs::balance::bias(), .jitter = 0.1, .evaluation_slots = {4}}}};  // in evaluation, no expert is full
constexpr gs::nn::transformer_options exact = gs::nn::for_evaluation(training);
template <gs::dtype Stored>
constexpr gs::nn::transformer_options with_cache_in = [] {
  gs::nn::transformer_options o = training;
  o.cache_dtype = Stored;
  return o;
}();

template <gs::dtype Stored>
constexpr auto memory_of = [](auto& m, auto source) {
  gs::nn::routing_summary routing;
  const auto table = m.param("embedding", "VM", gs::init::fan_in("M"));
  const auto memory = gs::nn::encode<"expert">(m.scope("encoder"), table, source, gs::nn::real_tokens(m, source), exact, routing);
  gs::nn::start_decoding(m.scope("decoder"), memory, with_cache_in<Stored>);
  return memory;
};
constexpr auto whole_decoding = [](auto& m, auto source, auto memory, auto target) {
  gs::nn::routing_summary routing;
  const auto table = m.param("embedding", "VM", gs::init::fan_in("M"));
  const auto y = gs::nn::decode<"expert">(m.scope("decoder"), table, target, gs::nn::real_tokens(m, target), memory,
                                          gs::nn::real_tokens(m, source), exact, routing);
  return gs::einsum<"GBTM,VM->GBTV">(y, table);
};
template <gs::dtype Stored>
constexpr auto cached_decoding = [](auto& m, auto source, auto now, auto position, auto order) {
  const auto table = m.param("embedding", "VM", gs::init::fan_in("M"));
  const auto y = gs::nn::decode_step<"expert">(m.scope("decoder"), table, now, position, gs::nn::real_tokens(m, source),
                                               with_cache_in<Stored>, order);
  return gs::einsum<"GBM,VM->GBV">(y, table);
};
using one_position = in<"GB", P<"expert", none>, std::int32_t>;
template <gs::dtype Stored>
using encoding = gs::program<memory_of<Stored>, mesh, ids<"GBS">>;
using whole = gs::program<whole_decoding, mesh, ids<"GBS">, in<"GBSM", P<"expert", none, none, none>>, ids<"GBT">>;
template <gs::dtype Stored>
using cached = gs::program<cached_decoding<Stored>, mesh, ids<"GBS">, one_position, in<"", void, std::int32_t>, one_position>;
/// Keys and values of both attentions in two layers have the type `Stored`. Decoding sends tokens to the experts and back, and nothing
/// else.
template <gs::dtype Stored>
void check_plan() {
  const gs::plan_view plan = planned::plan_of<cached<Stored>>();
  int caches = 0;
  for (const gs::parameter& p : plan.parameters)
    if (p.is_cache) caches += plan.values[std::size_t(p.value)].type == Stored;
  CHECK(caches == 2 * 2 * 2);
  CHECK(plan.count(gs::op::all_to_all) == 2);
  CHECK(plan.collectives() == 2);
  CHECK(plan.count(gs::op::random) == 0);
}

template <gs::dtype Stored>
void compare_decoding(double tolerance) {
  for (const int devices : {1, 4}) {
    const auto on = gs::simulate<mesh>(devices);
    gs::parameter_store store(on, 5);
    planned::executable<encoding<Stored>> encode(on, extents, store);
    planned::executable<whole> without(on, extents, store);
    planned::executable<cached<Stored>> with(on, extents, store);
    std::vector<std::int32_t> source(G * B * S);
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = i % S > 1 + i / (B * S) % 4 ? 0 : std::int32_t(1 + i / (B * S) % (V - 1));
    const std::vector<float> memory = encode(source).floats();  // the rows of a group have equal sources, as in beam search
    std::vector<std::int32_t> sequence(G * B * T, 0), now(G * B, 1), order(G * B);
    for (std::size_t t = 0; t < T; ++t) {
      for (std::size_t row = 0; row < G * B; ++row) order[row] = std::int32_t(t % 2 == 1 ? (row / B + t / 2) % B : row % B);
      const std::vector<std::int32_t> before = sequence;
      for (std::size_t row = 0; row < G * B; ++row)
        for (std::size_t k = 0; k < T; ++k)
          sequence[row * T + k] = k == t ? now[row] : before[(row - row % B + std::size_t(order[row])) * T + k];
      const std::vector<float> step = with(source, now, std::vector{std::int32_t(t)}, order).floats(),
                               all = without(source, memory, sequence).floats();
      for (std::size_t row = 0; row < G * B; ++row) {
        for (std::size_t v = 0; v < V; ++v) CHECK(step[row * V + v] == doctest::Approx(all[(row * T + t) * V + v]).epsilon(tolerance));
        now[row] = std::int32_t(1 + (row * 7 + t * 3) % (V - 1));
      }
    }
    CHECK_THROWS_AS(with(source, now, std::vector{std::int32_t(T)}, order), gs::error);
  }
}

}  // namespace

TEST_CASE("decode_step: logits with a cache are those of all positions at once, also if sequences change their rows") {
  check_plan<gs::dtype::f32>();
  check_plan<gs::dtype::bf16>();
  compare_decoding<gs::dtype::f32>(1e-3);
  compare_decoding<gs::dtype::bf16>(0x1p-6);  // of 8 bits
}

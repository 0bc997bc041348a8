// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The memory that remat scopes save in a training step of 12 + 12 layers, with the sizes from the guide to memory.
#include <gshard/models/transformer.hpp>

#include <gshard/core/cost/step_time.hpp>
#include <gshard/core/program/compile.hpp>
#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

#include <doctest/doctest.h>

#include <array>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"expert", 1>>;

template <gs::remat_policy Saved>
constexpr auto training_step = [](auto& m, auto source, auto target, auto next, auto rate) {
  constexpr gs::nn::transformer_options options{
      .encoder_layers = 12, .decoder_layers = 12, .dropout = 0.1, .moe = {}, .saved = Saved};
  gs::nn::routing_summary routing;
  const auto table = m.param("embedding", "VM", gs::init::fan_in("M"));
  const auto source_mask = gs::nn::real_tokens(m, source), target_mask = gs::nn::real_tokens(m, target);
  const auto memory = gs::nn::encode<"expert">(m.scope("encoder"), table, source, source_mask, options, routing);
  const auto y = gs::nn::decode<"expert">(m.scope("decoder"), table, target, target_mask, memory, source_mask, options, routing);
  const auto loss =
      gs::sum(gs::cross_entropy(gs::einsum<"GBTM,VM->GBTV">(y, table), next, 0.1) * target_mask) / gs::sum(target_mask);
  gs::adam{}.minimize(m, m.objective(loss, 0.3), rate);
  return loss;
};
template <gs::fixed_string Letters>
using ids = in<Letters, P<"expert", none, none>, std::int32_t>;

template <gs::remat_policy Saved>
gs::step_price priced() {
  const gs::dims sizes{{'G', 1},  {'B', 16},   {'S', 128}, {'T', 128},  {'M', 256}, {'H', 8},
                       {'D', 32}, {'F', 1024}, {'E', 8},   {'V', 4096}, {'L', 128}};
  gs::graph program = gs::trace<training_step<Saved>, mesh, ids<"GBS">, ids<"GBT">, ids<"GBT">, in<"">>();
  REQUIRE(!program.problem);
  const gs::plan_tables plan = gs::compile(program, mesh::shape, gs::compile_options{});
  REQUIRE(!plan.problem);
  return gs::price(plan.view(), plan.view().bind(sizes, std::array{1}), gs::machine{});
}

}  // namespace

TEST_CASE("transformer: layers that recompute their activations take at most 0.45 of the memory of 12 + 12 layers that keep them") {
  const auto kept = priced<gs::remat_policy::everything>(), nothing = priced<gs::remat_policy::nothing>(),
             products = priced<gs::remat_policy::products>();
  CHECK(nothing.parameters == kept.parameters);  // including the state of Adam
  CHECK(double(nothing.bytes()) <= 0.45 * double(kept.bytes()));
  CHECK(double(products.bytes()) <= 0.6 * double(kept.bytes()));
  CHECK(double(nothing.peak) <= 0.15 * double(kept.peak));
}

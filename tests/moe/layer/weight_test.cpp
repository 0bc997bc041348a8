// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Models with weights in bf16, compared with float weights of equal values: the same bits in results and in training.
#include <gshard/moe/layer/weight.hpp>

#include <gshard/exec/program/parameter_access.hpp>
#include <gshard/models/language_model.hpp>
#include <gshard/eager/reshard.hpp>
#include <gshard/train/adam.hpp>

#include <Eigen/Core>
#include <doctest/doctest.h>

#include "../../exec/planned_program.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace gs = gshard;
namespace nn = gshard::nn;
using gs::bfloat16, gs::dtype, gs::in, gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"data">, gs::axis<"expert">>;

namespace {

constexpr std::size_t G = 4, B = 2, T = 5, V = 11;
const gs::dims extents{{'G', G}, {'B', B},  {'S', T}, {'T', T}, {'M', 8}, {'H', 2},
                       {'R', 6}, {'D', 4}, {'F', 12}, {'E', 4}, {'V', V}, {'L', T}};

enum class experts { in_slots, in_groups, dropless, with_replicas };
constexpr nn::moe_options experts_of(experts kind) {
  if (kind == experts::in_slots) return {.routing = {.slots = {3}}, .swiglu = true, .biases = true, .shared_experts = 1};
  if (kind == experts::in_groups) return {.routing = {.slots = {3}}, .experts = gs::experts::in_groups(2), .swiglu = true};
  if (kind == experts::with_replicas) return {.routing = {.slots = {3}}, .experts = gs::experts::with_replicas()};
  return {.experts = gs::experts::dropless(2), .swiglu = true};
}
template <dtype Stored, experts Kind>
constexpr auto language_model = [](auto& m, auto ids, auto labels, auto rate) {
  nn::routing_summary routing;
  const nn::language_model_options options{.layers = 2, .moe = experts_of(Kind), .tied_head = false, .param_dtype = Stored};
  const auto logits = nn::language_model<"expert">(m, ids, options, routing);
  const auto loss = nn::token_loss(logits, labels);
  gs::adam{}.minimize(m, m.objective(loss, 0.1), rate);
  return std::tuple{logits, loss};
};
template <dtype Stored, bool Fused>
constexpr auto transformer = [](auto& m, auto source, auto target, auto rate) {
  nn::routing_summary routing;
  const nn::transformer_options options{.moe = {}, .fused_attention = Fused, .param_dtype = Stored};
  const auto table = gs::cast<float>(m.param("embedding", "VM", gs::init::fan_in("M"), Stored));
  const auto source_mask = nn::real_tokens(m, source), target_mask = nn::real_tokens(m, target);
  const auto memory = nn::encode<"expert">(m.scope("encoder"), table, source, source_mask, options, routing);
  const auto y = nn::decode<"expert">(m.scope("decoder"), table, target, target_mask, memory, source_mask, options, routing);
  const auto logits = gs::einsum<"GBTM,VM->GBTV">(y, table);
  const auto loss = nn::token_loss(logits, target);
  gs::adam{}.minimize(m, m.objective(loss, 0.1), rate);
  return std::tuple{logits, loss};
};
template <gs::fixed_string Letters>
using ids_of = in<Letters, P<gs::axes<"data", "expert">, none, none>, std::int32_t>;
template <auto Model, gs::fixed_string First>
using program = gs::program<Model, mesh, ids_of<First>, ids_of<"GBT">, in<"">>;

bool agree(const std::vector<float>& a, const std::vector<float>& b, float tolerance) {
  bool all = a.size() == b.size();
  for (std::size_t i = 0; all && i < a.size(); ++i) all = std::abs(a[i] - b[i]) <= tolerance;
  return all;
}

/// Two steps of training, with the weights in bf16 and with their values in float. The results are equal, or differ by a rounding: a cast
/// determines the order in which the gradients of a table with several readers are added.
template <gs::fixed_string First, auto Stored, auto Full>
void compare(const std::vector<int>& devices, float tolerance = 0) {
  const auto on = gs::simulate<mesh>(devices);
  gs::parameter_store in_bf16(on, 3), in_float(on, 3);
  planned::executable<program<Stored, First>> stored(on, extents, in_bf16);
  planned::executable<program<Full, First>> full(on, extents, in_float);
  std::vector<std::string> weights;
  for (const auto& [name, entry] : in_bf16.saved())
    if (entry.value.type == dtype::bf16) weights.push_back(name);
  CHECK(weights.size() > 8);
  const auto values = [&](const std::string& name) {
    const std::vector<bfloat16> w = gs::to_global<bfloat16>(in_bf16, name);
    return std::vector<float>(w.begin(), w.end());
  };
  for (const std::string& name : weights) gs::set_global<float>(in_float, name, values(name));
  std::vector<std::int32_t> ids(G * B * T), labels = ids;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] = std::int32_t(1 + (i * i + i / T) % (V - 1));
    labels[i] = std::int32_t(i * 5 % V);
  }
  for (int step = 0; step < 2; ++step) {
    const planned::results made = stored(ids, labels, std::vector{0.01f}), expected = full(ids, labels, std::vector{0.01f});
    CHECK(agree(made.floats(), expected.floats(), 10 * tolerance));
    CHECK(std::abs(made.item(1) - expected.item(1)) <= 10 * double(tolerance));
    for (const std::string& name : weights) {
      CAPTURE(name);
      std::vector<float> master = values(name);
      const std::vector<float> rest = gs::to_global<float>(in_bf16, "adam.rest." + name), moved = gs::to_global<float>(in_float, name);
      std::transform(master.begin(), master.end(), rest.begin(), master.begin(), [](float w, float r) { return w + r; });
      CHECK(agree(master, moved, tolerance));
      gs::set_global<float>(in_float, name, values(name));  // the next step of the model with float weights starts with rounded ones
      gs::set_global<float>(in_bf16, "adam.rest." + name, std::vector<float>(rest.size()));
    }
  }
}
const std::vector<std::vector<int>> meshes{{1, 1}, {2, 2}, {1, 4}};

}  // namespace

TEST_CASE("a language model with weights in bf16 computes and trains as one with float weights of equal values, on any mesh") {
  for (const std::vector<int>& devices : meshes) {
    CAPTURE(devices[0]);
    compare<"GBT", language_model<dtype::bf16, experts::in_slots>, language_model<dtype::f32, experts::in_slots>>(devices);
    compare<"GBT", language_model<dtype::bf16, experts::in_groups>, language_model<dtype::f32, experts::in_groups>>(devices);
    compare<"GBT", language_model<dtype::bf16, experts::dropless>, language_model<dtype::f32, experts::dropless>>(devices);
    compare<"GBT", language_model<dtype::bf16, experts::with_replicas>, language_model<dtype::f32, experts::with_replicas>>(devices);
  }
}

TEST_CASE("a Transformer with weights in bf16 computes and trains as one with float weights of equal values, on any mesh") {
  for (const std::vector<int>& devices : meshes) {
    CAPTURE(devices[0]);
    compare<"GBS", transformer<dtype::bf16, false>, transformer<dtype::f32, false>>(devices, 2e-7f);
    compare<"GBS", transformer<dtype::bf16, true>, transformer<dtype::f32, true>>(devices, 2e-7f);
  }
}

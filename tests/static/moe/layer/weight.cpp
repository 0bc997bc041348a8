// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The option .param_dtype of all layers: the parameters that are stored in this type, and the communication of sharded ones.
#include <gshard/moe/layer/weight.hpp>

#include <gshard/models/language_model.hpp>
#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

#include "../../tracing.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gs = gshard;
namespace nn = gshard::nn;
namespace op = gs::op;
using gs::dtype, gs::fault, gs::none, gs::P;
using tracing::input;

namespace {

/// True if the weights of products and the embeddings are in bf16. All other tensors are vectors or routers; they are in float.
constexpr bool stores_weights_in_bf16(const gs::graph& program) {
  int weights = 0;
  for (const gs::parameter& p : program.parameters) {
    const gs::value& v = program.at(p.value);
    const std::string_view name = p.name.view(), last = name.substr(name.rfind('.') + 1);
    if (!p.trainable) continue;
    const bool is_weight = v.rank() > 1 && last != "wg" && !last.starts_with("b");
    if (v.type != (is_weight ? dtype::bf16 : dtype::f32)) return false;
    weights += is_weight;
  }
  return weights > 0;
}
template <class F>
constexpr bool stores(F layer) {
  return tracing::holds([&](auto& b, auto& m) {
    layer(b, m);
    return stores_weights_in_bf16(b.program);
  });
}

static_assert(stores([](auto& b, auto& m) { nn::feed_forward(m, input(b, "GBTM"), dtype::bf16); }));
static_assert(stores([](auto& b, auto& m) {
  nn::attention(m, input(b, "GBQM"), input(b, "GBKM"), input(b, "GBK"), 0.1, dtype::bf16);
}));
static_assert(stores([](auto& b, auto& m) {
  nn::attention(m, input(b, "GBQM"), input(b, "GBQM"), {.grouped = true, .param_dtype = dtype::bf16});
}));
// Experts: in slots, in groups, without slots, with replicas. Biases also have an index of experts.
constexpr bool stores_experts(nn::moe_options o) {
  o.swiglu = o.biases = true;
  o.shared_experts = 1;
  o.param_dtype = dtype::bf16;
  return stores([&](auto& b, auto& m) { nn::moe<"x">(m, input(b, "GSM"), input(b, "GS"), o); });
}
using gs::experts;
static_assert(stores_experts({}) && stores_experts({.experts = experts::in_groups(2)}));
static_assert(stores_experts({.experts = experts::dropless(2)}));
static_assert(stores_experts({.experts = experts::with_replicas()}) && stores_experts({.experts = experts::in_groups(2), .chunks = 2}));
// Models pass the option to their experts.
static_assert(stores([](auto& b, auto& m) {
  nn::routing_summary routing;
  nn::language_model<"x">(m, input(b, "GBT", dtype::i32), {.tied_head = false, .param_dtype = dtype::bf16}, routing);
}));
template <bool Fused, bool Dense>
constexpr bool transformer_stores = stores([](auto& b, auto& m) {
  const nn::transformer_options o{.moe = {}, .dense = Dense, .fused_attention = Fused, .param_dtype = dtype::bf16};
  nn::routing_summary routing;
  const auto ids = input(b, "GBS", dtype::i32), next = input(b, "GBT", dtype::i32), table = input(b, "VM");
  const auto mask = nn::real_tokens(m, ids);
  const auto memory = nn::encode<"x">(m.scope("encoder"), table, ids, mask, o, routing);
  nn::decode<"x">(m.scope("decoder"), table, next, nn::real_tokens(m, next), memory, mask, o, routing);
  const auto last = input(b, "GB", dtype::i32), position = input(b, "", dtype::i32);
  nn::start_decoding(m.scope("decoder"), memory, o);
  nn::decode_step<"x">(m.scope("decoder"), table, last, position, mask, o);  // the same parameters
});
static_assert(transformer_stores<false, false> && transformer_stores<true, false> && transformer_stores<false, true>);

// An option of the experts has priority. Without options, all parameters have the type of the model.
static_assert(tracing::holds([](auto& b, auto& m) {
  nn::routing_summary routing;
  nn::language_model<"x">(m, input(b, "GBT", dtype::i32),
                          {.moe = {.swiglu = true, .param_dtype = dtype::f32}, .param_dtype = dtype::bf16}, routing);
  const auto type_of = [&](std::string_view name) {
    return b.program.at(b.program.parameters[std::size_t(b.find_parameter(gs::tensor_name(name)))].value).type;
  };
  return type_of("model.layers.1.block_sparse_moe.wi") == dtype::f32 && type_of("model.layers.0.mlp.up_proj.weight") == dtype::bf16;
}));
static_assert(tracing::holds([](auto& b, auto& m) {
  nn::feed_forward(m, input(b, "GBTM"));
  return tracing::count(b.program, op::cast) == 0;
}));
static_assert(tracing::wrong_type("param", "wi", "i32", "f32, f64, f16, bf16",
                                  [](auto& b, auto& m) { nn::feed_forward(m, input(b, "GBTM"), dtype::i32); }));
static_assert(tracing::wrong_type("param", "wi", "c64", "f32, f64, f16, bf16", [](auto& b, auto& m) {
  nn::moe<"x">(m, input(b, "GSM"), input(b, "GS"), {.experts = experts::in_groups(2), .param_dtype = dtype::c64});
}));

// FSDP: weights are gathered with half of the bytes. Their gradients are reduce-scattered in float.
template <dtype Stored>
inline constexpr auto step = [](auto& m, auto x, auto rate) {
  for (int i = 0; i < 2; ++i) {
    const auto layer = m.scope(i);
    layer.param("wi", "MF", P<"data", none>{}, gs::init::fan_in("M"), Stored);  // shards the parameters of the layer
    layer.param("wo", "FM", P<none, "data">{}, gs::init::fan_in("F"), Stored);
    x = x + nn::feed_forward(layer, x, Stored);
  }
  const auto loss = gs::mean(x * x);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
template <dtype Stored>
constexpr const gs::plan_view& plan =
    gs::program<step<Stored>, gs::mesh<gs::axis<"data">>, gs::in<"GBTM", P<"data", none, none, none>>, gs::in<"">>::plan;
template <dtype Stored>
constexpr std::int64_t bytes_of(gs::op_ref kind) {
  constexpr std::array devices{4};
  const gs::plan_view& p = plan<Stored>;
  return p.bytes_received(kind, p.bind({{'G', 8}, {'B', 2}, {'T', 4}, {'M', 64}, {'F', 32}}, devices));
}
constexpr std::int64_t of_weights = 4 * 64 * 32 * 3 / 4;  // elements of four matrices that each of four devices lacks
static_assert(bytes_of<dtype::f32>(op::all_gather) - bytes_of<dtype::bf16>(op::all_gather) == 2 * of_weights);
static_assert(bytes_of<dtype::bf16>(op::all_gather) - 2 * of_weights < 256);  // the remainder is the sum of a bias
static_assert(bytes_of<dtype::f32>(op::reduce_scatter) == bytes_of<dtype::bf16>(op::reduce_scatter));
static_assert(plan<dtype::f32>.count(op::all_gather) == plan<dtype::bf16>.count(op::all_gather));

}  // namespace

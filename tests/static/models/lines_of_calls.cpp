// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// All nodes that layers add have the line of the program that calls them. Their faults and the nodes of their gradients have it as well.
#include <gshard/models/attention.hpp>
#include <gshard/models/language_model.hpp>
#include <gshard/models/pipeline.hpp>
#include <gshard/models/ring_attention.hpp>
#include <gshard/models/rotary.hpp>
#include <gshard/models/transformer.hpp>
#include <gshard/moe/layer/moe.hpp>
#include <gshard/moe/layer/router.hpp>
#include <gshard/moe/layer/swiglu.hpp>
#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>
#include <gshard/train/clip.hpp>

#include "../tracing.hpp"

#include <cstdint>
#include <string_view>

namespace gs = gshard;
namespace nn = gshard::nn;
using gs::dtype, gs::fault, gs::symbol;
using tracing::input;

namespace {

/// True if all nodes have lines of this file, between the call and a few lines after it.
constexpr bool are_here(const gs::graph& g, std::uint32_t first, std::uint32_t last = 0) {
  for (const gs::node& n : g.nodes)
    if (n.place.file == nullptr || std::string_view(n.place.file) != __FILE__ || n.place.line < first ||
        n.place.line > (last ? last : first))
      return false;
  return !g.problem && !g.nodes.empty();
}
/// f(builder, parameter_scope) calls layers in the lines after `first`.
template <class F>
constexpr bool names_its_lines(std::uint32_t first, std::uint32_t last, F f) {
  gs::builder b = tracing::on(gs::mesh<gs::axis<"x", 2>>::shape);
  const gs::parameter_scope m(b);
  f(b, m);
  return are_here(b.program, first, last);
}

static_assert(names_its_lines(__LINE__, __LINE__ + 9, [](auto& b, auto& m) {
  const symbol x = input(b, "GSM"), mask = input(b, "GS");
  nn::moe<"x">(m.scope(0), x, mask);
  nn::moe<"x">(m.scope(1), x, mask, {.experts = gs::experts::in_groups(2), .swiglu = true, .biases = true, .shared_experts = 1});
  constexpr gs::routing_options noisy{.balance = gs::balance::bias(), .jitter = 0.1, .gumbel = 1, .z_loss = 1};
  nn::moe<"x">(m.scope(2), x, mask, {.routing = noisy, .experts = gs::experts::dropless()});
  nn::moe<"x">(m.scope(3), x, mask, {.routing = {.choice = gs::choice::by_experts}, .experts = gs::experts::with_replicas(), .chunks = 1});
  nn::moe<"x">(m.scope(4), x, mask, {.routing = {.sets = {4, 2}}, .chunks = 2});
}));
static_assert(names_its_lines(__LINE__, __LINE__ + 12, [](auto& b, auto& m) {
  const symbol q = input(b, "GBQM"), k = input(b, "GBKM"), padding = input(b, "GBK");
  nn::attention(m.scope(0), q, k, padding);
  nn::attention(m.scope(1), q, q, {.causal = true, .grouped = true, .rotary_base = 100, .dropout = 0.1});
  nn::ring_attention<"x">(input(b, "BTHD"), input(b, "BTHD"), input(b, "BTHD"), {.causal = true});
  nn::rms_norm(q, m.param("gamma", "M", gs::init::zeros()));
  nn::rotary(q, gs::iota<"B">(m), 1);
  nn::route(m, input(b, "GSM"), input(b, "GS"));
  nn::swiglu(q, q);
  nn::padding_bias(padding);
  nn::measure_balance(input(b, "E"), gs::sum(input(b, "E")));
}));
static_assert(names_its_lines(__LINE__, __LINE__ + 8, [](auto& b, auto& m) {
  nn::routing_summary routing;
  const symbol ids = input(b, "GBT", dtype::i32), now = input(b, "GB", dtype::i32), at = input(b, "", dtype::i32);
  const symbol logits = nn::language_model<"x">(m.scope(0), ids, {.dropout = 0.1}, routing);
  nn::token_loss(logits, ids);
  const symbol next = nn::language_model_step<"x">(m.scope(1), now, at, {});
  nn::sample_token(m, next, 0.5);
}));
static_assert(names_its_lines(__LINE__, __LINE__ + 14, [](auto& b, auto& m) {
  nn::routing_summary routing;
  nn::transformer_options in_blocks;
  in_blocks.fused_attention = true;
  const symbol table = input(b, "VM"), ids = input(b, "GBS", dtype::i32), to = input(b, "GBT", dtype::i32);
  const symbol from = nn::real_tokens(m, ids), into = nn::real_tokens(m, to);
  const symbol memory = nn::encode<"x">(m.scope("encoder"), table, ids, from, in_blocks, routing);
  nn::decode<"x">(m.scope("decoder"), table, to, into, memory, from, {}, routing);
  nn::routing_summary::total(routing.load);
  nn::start_decoding(m.scope("decoder"), memory, {});
  nn::decode_step<"x">(m.scope("decoder"), table, input(b, "GB", dtype::i32), input(b, "", dtype::i32), from, {});
}));
static_assert(names_its_lines(__LINE__, __LINE__ + 8, [](auto& b, auto& m) {
  const symbol x = input(b, "GSM"), mask = input(b, "GS"), w = m.param("w", "M", gs::init::zeros());
  const auto r = nn::moe<"x">(m.scope(0), x, mask);
  const symbol loss = m.objective(gs::mean(nn::rms_norm(r.y, w)), 0.1);
  const auto of = gs::gradients(loss, gs::trainable(m));
  gs::clip_by_global_norm(of, 1.0);
}));
// Also the update of a parameter in bf16.
static_assert(names_its_lines(__LINE__, __LINE__ + 7, [](auto& b, auto& m) {
  const symbol w = m.param("w", "AB", gs::init::zeros(), dtype::bf16), rate = input(b, "");
  const symbol y = gs::cast(w, dtype::f32), loss = gs::mean(y * y);
  gs::adam{.if_not_finite = gs::not_finite::skip, .wire = gs::gradient_wire::bf16, .clip_norm = 1}.minimize(m, loss, rate);
  const symbol v = m.param("v", "AB", gs::init::zeros(), dtype::bf16);
  gs::adam{.if_not_finite = gs::not_finite::skip}.update(m, v, gs::cast(v, dtype::f32), rate);
}));
constexpr bool updates_have_their_line() {
  gs::builder b = tracing::on(gs::mesh<gs::axis<"x", 2>>::shape);
  const gs::parameter_scope m(b);
  const symbol w = m.param("w", "AB", gs::init::zeros(), dtype::bf16), g = input(b, "AB"), rate = input(b, "");
  const std::uint32_t line = __LINE__ + 1;
  gs::adam{}.update(m, w, g, rate);
  return are_here(b.program, line);
}
static_assert(updates_have_their_line());
// The body of a pipeline has its own lines, and its layers have theirs.
static_assert([] {
  gs::builder b = tracing::on(gs::mesh<gs::axis<"x", 2>>::shape);
  const gs::parameter_scope m(b);
  const symbol x = input(b, "BSM");
  b.options.known.set('B', 4);
  b.options.known.set('N', 2);
  const std::uint32_t line = __LINE__;
  const auto stage = [](auto y, auto w) {
    return nn::swiglu(y, y + w);
  };
  nn::pipeline(m, {}, stage, x, input(b, "N"));
  int of_layer = 0;
  for (const gs::node& n : b.program.nodes) of_layer += n.place.line == line + 2;
  return of_layer >= 2 && are_here(b.program, line + 2, line + 4);
}());

// Faults name the line and the scope.
constexpr gs::diagnostic of_ids = tracing::problem_of([](auto& b, auto& m) {
  nn::routing_summary routing;
  m.scope("model").scope("layers").scope(0).scope("self_attn").scope("o_proj").param("weight", "MHR", gs::init::fan_in("M"));
  nn::language_model<"x">(m, input(b, "GBT", dtype::i32), {.moe_every = 0}, routing);
});
static_assert(of_ids.what == fault::duplicate_name && of_ids.line == __LINE__ - 2 && of_ids.scope.view() == "attention");

}  // namespace

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A decoder-only language model with mixture-of-experts layers: training, and decoding with a cache of keys and values.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/core/base/fixed_string.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/iota.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/named_scope.hpp>
#include <gshard/core/trace/parameter_scope.hpp>
#include <gshard/core/trace/remat.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/models/ring_attention.hpp>
#include <gshard/models/rotary.hpp>
#include <gshard/models/transformer.hpp>
#include <gshard/moe/layer/moe.hpp>
#include <gshard/moe/layer/swiglu.hpp>
#include <gshard/moe/layer/weight.hpp>
#include <gshard/ops/attention/attention.hpp>
#include <gshard/ops/index/dynamic_slice.hpp>
#include <gshard/ops/index/gather.hpp>
#include <gshard/ops/random/dropout.hpp>
#include <gshard/ops/random/random.hpp>
#include <gshard/ops/reduce/argmax.hpp>
#include <gshard/ops/rows/cross_entropy.hpp>
#include <gshard/ops/rows/softmax.hpp>

namespace gshard { inline namespace v0 { namespace nn {

/// Options of a decoder-only model, such as Mixtral. Dims of data: G groups, B sequences per group, T positions, L positions of the cache.
/// Dims of the model: M model, F hidden, E experts, V vocabulary. Dims of attention: H heads of keys and values, D elements of a head. Each
/// of the H heads has R heads of queries.
///
/// Parameters have the names and the memory order of Hugging Face's Mixtral: "model.embed_tokens.weight" [V,M];
/// "model.layers.0.input_layernorm.weight" [M]; "model.layers.0.self_attn.q_proj.weight" [H,R,D,M], k_proj and v_proj [H,D,M], o_proj
/// [M,H,R,D]; "model.layers.0.post_attention_layernorm.weight"; "model.norm.weight"; "lm_head.weight" [V,M]. Layers without experts have
/// "mlp.gate_proj.weight" and "mlp.up_proj.weight" [F,M] and "mlp.down_proj.weight" [M,F]. Experts have the parameters of nn::moe in
/// "model.layers.0.block_sparse_moe": expert e has w1, w3, w2, transposed, in row e of wi_gate, wi and wo; wg is the transposed gate.
/// load_hugging_face reads such weights.
struct language_model_options {
  int layers = 2;
  int moe_every = 2;  ///< Every n-th layer has experts: with n = 2, layers 1, 3 and so on, counted from 0. 0: none has.
  moe_options moe{.swiglu = true};  ///< Options of layers with experts.
  double rotary_base = 10000;
  double epsilon = 1e-5;     ///< The epsilon of rms_norm.
  bool tied_head = true;     ///< The embeddings are the weights of the head.
  double dropout = 0;        ///< The rate of dropout of the results of attention and of feed-forward layers.
  remat_policy saved = remat_policy::everything;  ///< The tensors that a layer keeps for the gradient. @see remat
  param_dtype_option param_dtype{};               ///< The stored element type of embeddings and weights of products, including experts.
  param_dtype_option cache_dtype{};  ///< The stored element type of keys and values in decoding: dtype::bf16 takes half of the bytes.
  axis_name sequence_axis{};  ///< If not empty: the mesh axis that shards T. Attention is ring_attention, except in steps of decoding.
};

namespace detail {

template <class = void>
constexpr symbol language_model_norm(const parameter_scope& m, symbol x, const language_model_options& o) {
  return rms_norm(x, m.param("weight", "M", init::constant(1)), o.epsilon);
}

/// Causal attention of positions [T]. `at`: the first position of a step of decoding, or empty. In a step of decoding, keys and values are
/// added to the caches "key_cache" and "value_cache" [G,B,L,H,D], which hold earlier positions.
template <class = void>
constexpr symbol language_model_attention(const parameter_scope& m, symbol x, symbol positions, const decoding_position& at,
                                          const language_model_options& o) {
  const named_scope named(m, "attention");
  builder& b = m.owner();
  const auto weight = [&](std::string_view name, std::string_view letters, std::string_view fan_in) {
    return detail::weight(m.scope(name), "weight", letters, init::fan_in(fan_in), o.param_dtype);
  };
  const symbol wq = weight("q_proj", "HRDM", "M"), wk = weight("k_proj", "HDM", "M");
  const symbol wv = weight("v_proj", "HDM", "M"), wo = weight("o_proj", "MHRD", "HRD");
  if (b.failed()) return b.nothing();
  const bool cached = at.position.id >= 0;
  const symbol q = rotary(einsum<"GBTM,HRDM->GBTHRD">(x, wq), positions, 2, o.rotary_base);
  symbol k = rotary(einsum<"GBTM,HDM->GBTHD">(x, wk), positions, 2, o.rotary_base), v = einsum<"GBTM,HDM->GBTHD">(x, wv);
  if (cached) {
    k = extend_cache(m, "key_cache", "GBLHD", k, at, o.cache_dtype);
    v = extend_cache(m, "value_cache", "GBLHD", v, at, o.cache_dtype);
  }
  const symbol y = cached                    ? gshard::attention(q, k, v, {.position = at.position})
                   : o.sequence_axis.empty() ? gshard::attention(q, k, v, {.causal = true})
                                             : emit_ring_attention(q, k, v, {.causal = true}, o.sequence_axis.view());
  return einsum<"GBTHRD,MHRD->GBTM">(y, wo);
}

/// w2 (silu(w1 x) * (w3 x)).
template <class = void>
constexpr symbol language_model_feed_forward(const parameter_scope& m, symbol x, param_dtype_option stored) {
  const named_scope named(m, "feed-forward");
  const symbol gate = weight(m.scope("gate_proj"), "weight", "FM", init::fan_in("M"), stored);
  const symbol up = weight(m.scope("up_proj"), "weight", "FM", init::fan_in("M"), stored);
  const symbol down = weight(m.scope("down_proj"), "weight", "MF", init::fan_in("F"), stored);
  const symbol gated = einsum<"GBTM,FM->GBTF">(x, gate), raised = einsum<"GBTM,FM->GBTF">(x, up);
  return einsum<"GBTF,MF->GBTM">(swiglu(gated, raised), down);
}

/// The positions [T] of ids: from 0, or from the position of a step of decoding. In a step, all must be in the cache.
constexpr symbol positions_from(const parameter_scope& m, int dim, const decoding_position& at) {
  builder& b = m.owner();
  const symbol counted = gshard::detail::emit_indices(b, dim);
  return at.position.id < 0 || b.failed() ? counted : checked_position(m, b.bound_dim('L'), here(counted) + at.position);
}

template <fixed_string ExpertAxis>
constexpr symbol language_model_logits(const parameter_scope& m, symbol ids, const decoding_position& at, const language_model_options& o,
                                       routing_summary& routing) {
  const parameter_scope model = m.scope("model");
  const symbol table = weight(model.scope("embed_tokens"), "weight", "VM", init::fan_in("M"), o.param_dtype);
  moe_options experts = o.moe;
  experts.param_dtype = experts.param_dtype.or_else(o.param_dtype);
  builder& b = m.owner();
  if (!b.has(ids)) return b.nothing();
  const symbol mask = real_tokens(m, ids), positions = positions_from(m, ids.get().dims[2], at);
  symbol x = scale_by<"M">(gather(table, ids), o.tied_head ? 0.5 : 0);
  for (int i = 0; i < o.layers; ++i) {
    const parameter_scope layer = model.scope("layers").scope(i);
    const remat recomputed(layer, o.saved);
    const symbol a = language_model_norm(layer.scope("input_layernorm"), x, o);
    x = x + dropout(language_model_attention(layer.scope("self_attn"), a, positions, at, o), o.dropout);
    symbol f = language_model_norm(layer.scope("post_attention_layernorm"), x, o);
    if (o.moe_every > 0 && (i + 1) % o.moe_every == 0) {
      const symbol tokens = merge_dims<1>(f), real = merge_dims<1>(mask);
      const moe_result r = moe<ExpertAxis>(layer.scope("block_sparse_moe"), tokens, real, experts);
      routing.add(r);
      f = split_dim<1>(r.y);
    } else {
      f = language_model_feed_forward(layer.scope("mlp"), f, o.param_dtype);
    }
    x = x + dropout(f, o.dropout);
  }
  x = language_model_norm(model.scope("norm"), x, o);
  const symbol head = o.tied_head ? table : weight(m.scope("lm_head"), "weight", "VM", init::fan_in("M"), o.param_dtype);
  return einsum<"GBTM,VM->GBTV">(x, head);
}

}  // namespace detail

/// language_model<"expert">(m, ids, options, routing): the logits of the token after each position. Each position sees the positions up to
/// itself. Id 0 is padding after the end of a sequence: experts skip it.
/// Shapes: int32 ids [G,B,T] -> [G,B,T,V].
/// Communicates: as its layers: two all_to_all for each layer with experts. With a sequence axis of n devices: 2 (n - 1) collective_permute
/// for each layer, and two more all_to_all for each layer with experts.
/// Compile time: ranks and dims; that the mesh has the axis.
/// Throws: `gshard::error`, if an id is V or more, D is odd, or the sequence axis does not shard T evenly.
/// @see language_model_options, language_model_step, token_loss
template <fixed_string ExpertAxis>
constexpr symbol language_model(const parameter_scope& m, here ids, const language_model_options& options, routing_summary& routing) {
  const line_of_call kept(m.owner());
  return detail::language_model_logits<ExpertAxis>(m, ids, {}, options, routing);
}

/// language_model_step<"expert">(m, ids, position, options, order): takes the token of each sequence at a position, and returns the logits
/// of the next token. It reads keys and values of earlier positions from caches, and adds the new ones. No checkpoint holds the caches.
/// Feed the positions of a sequence in order, from 0. A new batch needs no reset. With ids of T successive tokens, `position` is that of
/// the first: one step takes a whole prompt. If `order` is given, sequence b continues row order[g,b] of its group, as in beam search.
///
/// It uses for_evaluation(options): it neither draws random numbers nor trains routers. Logits are those of `language_model` with these
/// options, up to rounding, if no expert is full: set options.moe.routing.evaluation_slots to {E}.
/// Shapes: int32 ids [G,B] or [G,B,T], an int32 scalar, int32 order [G,B] -> [G,B,V] or [G,B,T,V].
/// Communicates: as language_model, for these positions. With an order and B sharded, also the caches: shard G instead.
/// Compile time: ranks and dims; that the mesh has the axis.
/// Throws: as language_model; `gshard::error` on all processes, if a position is not in the cache: less than 0, or L or more; if
/// a row of the order is less than 0, or B or more.
/// @see language_model, for_evaluation, sample_token, beam_search, decode_step
template <fixed_string ExpertAxis>
constexpr symbol language_model_step(const parameter_scope& m, here ids, symbol position, const language_model_options& options,
                                     symbol order = {}) {
  routing_summary routing;
  builder& b = m.owner();
  const line_of_call kept(b);
  if (!b.has(ids) || !b.has(position)) return b.nothing();
  const auto logits_of = [&](symbol fed) {
    return detail::language_model_logits<ExpertAxis>(m, fed, {position, order}, for_evaluation(options), routing);
  };
  return ids.rank() == 3 ? logits_of(ids) : squeeze<2>(logits_of(expand_dims<2>(ids)));
}

namespace detail {
inline constexpr auto one_if_label = [](auto id) { return 0 <= id ? decltype(id)(1) : decltype(id)(0); };
inline constexpr auto count_or_one = [](auto n) { return n < 1 ? decltype(n)(1) : n; };
}  // namespace detail

/// token_loss(logits, labels): the mean cross entropy of labels that are not negative. Without such labels, it and its gradient are 0.
/// Shapes: logits [..., V], int32 labels [...] -> a scalar.
/// Communicates: as cross_entropy; one all_reduce of the sums.
/// Compile time: ranks, dims and element types.
/// Throws: as cross_entropy.
/// @see cross_entropy
template <class Used = void>
constexpr symbol token_loss(here logits, symbol labels) {
  const line_of_call kept(*logits.owner);
  if (!logits.owner->has(logits)) return logits.owner->nothing();
  const symbol counted = map<when_used<Used, detail::one_if_label>>(cast(labels, logits.get().type));
  const symbol total = sum(cross_entropy(logits, labels));
  return total / map<when_used<Used, detail::count_or_one>>(sum(counted));
}

/// sample_token(m, logits, temperature): a random id with the probabilities softmax(logits / temperature), or, with temperature 0, the id
/// of the largest logit: greedy decoding. The seed and the step of the run determine it, with every sharding.
/// Shapes: logits [G,B,V] -> int32 [G,B].
/// Communicates: as argmax.
/// Compile time: rank; a real element type.
/// Throws: nothing.
/// @see language_model_step
template <class = void>
constexpr symbol sample_token(const parameter_scope& m, here logits, double temperature = 0) {
  builder& b = m.owner();
  const line_of_call kept(b);
  if (!b.has(logits)) return b.nothing();
  if (!(temperature >= 0)) b.fail_range("sample_token", "temperature");
  if (b.failed() || temperature == 0) return argmax<"GBV->GB">(logits);
  const symbol scaled = logits * (1 / temperature), noise = gshard::detail::emit_gumbel(b, logits.get().dims, logits.get().type);
  return argmax<"GBV->GB">(scaled + noise);
}

}}}  // namespace gshard::v0::nn

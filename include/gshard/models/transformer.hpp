// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// An encoder-decoder Transformer with mixture-of-experts layers.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/core/base/fixed_string.hpp>
#include <gshard/core/base/list.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/iota.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/named_scope.hpp>
#include <gshard/core/trace/parameter_scope.hpp>
#include <gshard/core/trace/remat.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/models/attention.hpp>
#include <gshard/moe/layer/moe.hpp>
#include <gshard/moe/layer/weight.hpp>
#include <gshard/ops/attention/attention.hpp>
#include <gshard/ops/index/dynamic_slice.hpp>
#include <gshard/ops/index/gather.hpp>
#include <gshard/ops/random/dropout.hpp>
#include <gshard/ops/rows/layer_norm.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace gshard { inline namespace v0 { namespace nn {

/// Options of an encoder-decoder Transformer. Every second feed-forward layer is a mixture of experts (arXiv 2006.16668 section 2.1). Dims:
/// G groups, B sequences per group, S source and T target positions, M model, H heads, D head, F hidden, E experts, V vocabulary, L maximum
/// number of positions.
struct transformer_options {
  int encoder_layers = 2;
  int decoder_layers = 2;
  double dropout = 0.1;
  moe_options moe;
  remat_policy saved = remat_policy::everything;  ///< The tensors that a layer keeps for the gradient. @see remat
  /// True replaces each layer of experts by the sum of k feed-forward layers: as many operations per token, without routing.
  bool dense = false;
  /// `encode` and `decode` compute attention in blocks, and never store the scores of all pairs of positions. Memory therefore grows
  /// linearly with the length. Results differ by rounding; a query that sees only padding gives 0. @see gshard::attention
  bool fused_attention = false;
  param_dtype_option param_dtype{};  ///< The stored element type of weights of products, including experts, and of position embeddings.
  param_dtype_option cache_dtype{};  ///< The stored element type of keys and values in decoding. @see decode_step
};

/// for_evaluation(options): the options of a model for evaluation. Its dropout is 0. Its routers have `.training = false`: no noise, every
/// second choice, slots by `.evaluation_slots`, and a fixed bias. Steps of decoding use it.
/// Shapes: none.
/// Communicates: nothing.
/// Compile time: that the type has `.dropout` and `.moe`.
/// Throws: nothing.
/// @see routing_options, language_model_step, decode_step
template <class Options>
constexpr Options for_evaluation(Options options) {
  options.dropout = 0;
  options.moe.routing.training = false;
  return options;
}

/// Load, overflow and demand of the MoE layers in a forward pass. `total` sums them over layers.
struct routing_summary {
  list<symbol> load, overflow, demand;

  constexpr void add(const moe_result& r) {
    load.push_back(r.load);
    overflow.push_back(r.overflow);
    demand.push_back(r.demand);
  }
  /// At least one layer has experts.
  static constexpr symbol total(const list<symbol>& terms, std::uint32_t line = __builtin_LINE(), const char* file = __builtin_FILE()) {
    symbol sum = here(terms.front(), line, file);
    const line_of_call kept(*sum.owner);
    for (std::size_t i = 1; i < terms.size(); ++i) sum = sum + terms[i];
    return sum;
  }
};

/// norm(m, x): layer_norm with its own parameters gamma and beta [M].
/// Shapes: x [..., M] -> the same.
/// Communicates: as layer_norm.
/// Compile time: that the last dim of x is M.
/// Throws: nothing.
/// @see layer_norm
template <class = void>
constexpr symbol norm(const parameter_scope& m, here x) {
  const line_of_call kept(m.owner());
  const symbol gamma = m.param("gamma", "M", init::constant(1)), beta = m.param("beta", "M", init::zeros());
  return layer_norm(x, gamma, beta);
}

/// feed_forward(m, x, param_dtype) = wo relu(wi x + bi) + bo. Parameters: wi [M,F], bi [F], wo [F,M], bo [M].
/// @see param_dtype_option
/// Shapes: x [G,B,T,M] -> the same.
/// Communicates: as its einsums: with F sharded, one all_reduce of the result.
/// Compile time: ranks and dims.
/// Throws: nothing.
/// @see feed_forward_or_moe
template <class = void>
constexpr symbol feed_forward(const parameter_scope& m, here x, param_dtype_option param_dtype = {}) {
  const line_of_call kept(m.owner());
  const named_scope named(m, "feed-forward");
  const symbol wi = detail::weight(m, "wi", "MF", init::fan_in("M"), param_dtype), bi = m.param("bi", "F", init::zeros());
  const symbol wo = detail::weight(m, "wo", "FM", init::fan_in("F"), param_dtype), bo = m.param("bo", "M", init::zeros());
  return einsum<"GBTF,FM->GBTM">(relu(einsum<"GBTM,MF->GBTF">(x, wi) + bi), wo) + bo;
}

/// feed_forward_or_moe(m, index, x, mask, options, routing): feed_forward in layers of even index. In layers of odd index, nn::moe over all
/// tokens of a group, or the sum of k feed_forward if `options.dense`.
/// Shapes: x [G,B,T,M], mask [G,B,T] -> the shape of x.
/// Communicates: as feed_forward or nn::moe.
/// Compile time: ranks and dims.
/// Throws: nothing.
/// @see feed_forward, nn::moe
template <fixed_string ExpertAxis>
constexpr symbol feed_forward_or_moe(const parameter_scope& m, int index, here x, symbol mask, const transformer_options& o,
                                     routing_summary& routing) {
  const line_of_call kept(m.owner());
  if (index % 2 == 0) return feed_forward(m.scope("ffn"), x, o.param_dtype);
  if (o.dense) {
    const parameter_scope layers = m.scope("dense");
    symbol sum = feed_forward(layers.scope(0), x, o.param_dtype);
    for (int i = 1; i < gshard::detail::in_effect(o.moe.routing).k; ++i) sum = sum + feed_forward(layers.scope(i), x, o.param_dtype);
    return sum;
  }
  moe_options experts = o.moe;
  experts.param_dtype = experts.param_dtype.or_else(o.param_dtype);
  const symbol tokens = merge_dims<1>(x), real = merge_dims<1>(mask);
  const moe_result r = moe<ExpertAxis>(m.scope("moe"), tokens, real, experts);
  routing.add(r);
  return split_dim<1>(r.y);
}

namespace detail {
/// The bias of hidden keys, which makes their weights 0. It is finite: a query without visible keys gets the mean of all values, not NaN.
inline constexpr float hidden_key = std::numeric_limits<float>::lowest() / 2;
inline constexpr auto one_if_real = [](auto id) { return 0 < id ? decltype(id)(1) : decltype(id)(0); };
inline constexpr auto bias_of_padding = [](auto real) { return (1 - real) * hidden_key; };
inline constexpr auto bias_of_later_keys = [](auto q, auto k) { return k <= q ? decltype(q)(0) : decltype(q)(hidden_key); };
inline constexpr auto second_operand = [](auto, auto v) { return v; };
}  // namespace detail

/// real_tokens(m, ids): 1 where a token is real, 0 where it is padding (id 0).
/// Shapes: int32 ids, any -> the same, of the model's element type.
/// Communicates: nothing.
/// Compile time: nothing.
/// Throws: nothing.
/// @see padding_bias
template <class Used = void>
constexpr symbol real_tokens(const parameter_scope& m, here ids) {
  const line_of_call kept(m.owner());
  return map<when_used<Used, detail::one_if_real>>(cast(ids, m.type()));
}

/// padding_bias(mask): 0 where a key is real, half of the lowest float at padding: a bias of attention.
/// Shapes: any -> the same.
/// Communicates: nothing.
/// Compile time: a real element type.
/// Throws: nothing.
/// @see nn::attention
template <class Used = void>
constexpr symbol padding_bias(here mask) {
  return map<when_used<Used, detail::bias_of_padding>>(mask);
}

/// embed(m, table, ids, positions, options): the sum of token and position embeddings, with dropout. Token embeddings are scaled by
/// sqrt(M). Parameter: position [L,M].
/// Shapes: table [V,M], int32 ids [G,B,T], int32 positions [T] -> [G,B,T,M].
/// Communicates: as gather.
/// Compile time: ranks and dims.
/// Throws: `gshard::error`, if an id is V or more, or a position L or more.
/// @see gather
template <class = void>
constexpr symbol embed(const parameter_scope& m, symbol table, here ids, symbol positions, const transformer_options& o) {
  const line_of_call kept(m.owner());
  const symbol at = gather(detail::weight(m, "position", "LM", init::normal(0.02), o.param_dtype), positions);
  return dropout(scale_by<"M">(gather(table, ids), 0.5) + at, o.dropout);
}

namespace detail {

/// The attention of a layer: with a bias, or in blocks. Both hide the same keys.
template <class = void>
constexpr symbol layer_attention(const parameter_scope& m, symbol query, symbol memory, symbol bias,
                                 attention_layer_options in_blocks, const transformer_options& o) {
  in_blocks.param_dtype = o.param_dtype;
  return o.fused_attention ? nn::attention(m, query, memory, in_blocks)
                           : nn::attention(m, query, memory, bias, o.dropout, o.param_dtype);
}

}  // namespace detail

/// encode(m, table, ids, mask, options, routing): the encoder of a Transformer. mask: real_tokens(m, ids).
/// Shapes: table [V,M], int32 ids [G,B,S], mask [G,B,S] -> [G,B,S,M].
/// Communicates: as its layers.
/// Compile time: ranks and dims.
/// Throws: as embed.
/// @see transformer_options, nn::decode
template <fixed_string ExpertAxis>
constexpr symbol encode(const parameter_scope& m, symbol table, here ids, symbol mask,
                        const transformer_options& o, routing_summary& routing) {
  const line_of_call kept(m.owner());
  const symbol bias = o.fused_attention ? m.owner().nothing() : padding_bias(mask);
  symbol x = embed(m, table, ids, iota<"S">(m), o);
  for (int i = 0; i < o.encoder_layers; ++i) {
    const parameter_scope layer = m.scope(i);
    const remat recomputed(layer, o.saved);
    const symbol q = norm(layer.scope("norm1"), x);
    x = x + dropout(detail::layer_attention(layer.scope("self"), q, q, bias, {.mask = mask, .dropout = o.dropout}, o), o.dropout);
    const symbol f = norm(layer.scope("norm2"), x);
    x = x + dropout(feed_forward_or_moe<ExpertAxis>(layer, i, f, mask, o, routing), o.dropout);
  }
  return norm(m.scope("norm"), x);
}

/// decode(m, table, ids, mask, memory, memory_mask, options, routing): the decoder of a Transformer. Each position sees the positions up to
/// itself, and the memory that `encode` returns.
/// Shapes: table [V,M], int32 ids [G,B,T], mask [G,B,T], memory [G,B,S,M], memory_mask [G,B,S] -> [G,B,T,M].
/// Communicates: as its layers.
/// Compile time: ranks and dims.
/// Throws: as embed.
/// @see transformer_options, nn::encode
template <fixed_string ExpertAxis>
constexpr symbol decode(const parameter_scope& m, symbol table, here ids, symbol mask, symbol memory, symbol memory_mask,
                        const transformer_options& o, routing_summary& routing) {
  const line_of_call kept(m.owner());
  symbol causal = m.owner().nothing(), bias = causal;
  if (!o.fused_attention) {
    const symbol query = cast(iota<"TT">(m, 0), m.type()), key = cast(iota<"TT">(m, 1), m.type());
    causal = map<when_used<decltype(ExpertAxis), detail::bias_of_later_keys>>(query, key);
    bias = padding_bias(memory_mask);
  }
  symbol x = embed(m, table, ids, iota<"T">(m), o);
  for (int i = 0; i < o.decoder_layers; ++i) {
    const parameter_scope layer = m.scope(i);
    const remat recomputed(layer, o.saved);
    const symbol q = norm(layer.scope("norm1"), x);
    x = x + dropout(detail::layer_attention(layer.scope("self"), q, q, causal, {.causal = true, .dropout = o.dropout}, o), o.dropout);
    const symbol c = norm(layer.scope("norm2"), x);
    const attention_layer_options in_blocks{.mask = memory_mask, .dropout = o.dropout};
    x = x + dropout(detail::layer_attention(layer.scope("cross"), c, memory, bias, in_blocks, o), o.dropout);
    const symbol f = norm(layer.scope("norm3"), x);
    x = x + dropout(feed_forward_or_moe<ExpertAxis>(layer, i, f, mask, o, routing), o.dropout);
  }
  return norm(m.scope("norm"), x);
}

namespace detail {

/// Keys and values [G,B,...,H,D] of x, with the parameters wk and wv of nn::attention.
struct keys_and_values {
  symbol keys, values;
};
template <class = void>
constexpr keys_and_values project_keys_and_values(const parameter_scope& m, symbol x, param_dtype_option stored) {
  const symbol wk = weight(m, "wk", "MHD", init::fan_in("M"), stored), wv = weight(m, "wv", "MHD", init::fan_in("M"), stored);
  return {einsum<"GBKM,MHD->GBKHD">(x, wk), einsum<"GBKM,MHD->GBKHD">(x, wv)};
}
/// The other half of nn::attention, with the parameters wq and wo.
template <class = void>
constexpr symbol attend(const parameter_scope& m, symbol x, const keys_and_values& to, const attention_options& o,
                        param_dtype_option stored) {
  const symbol wq = weight(m, "wq", "MHD", init::fan_in("M"), stored), wo = weight(m, "wo", "HDM", init::fan_in("HD"), stored);
  const symbol q = einsum<"GBQM,MHD->GBQHD">(x, wq);
  if (m.owner().failed()) return m.owner().nothing();
  return einsum<"GBQHD,HDM->GBQM">(gshard::attention(q, to.keys, to.values, o), wo);
}

/// The position of a step of decoding, an int32 scalar. Row b continues row order[g,b] of its group, if there is an order.
struct decoding_position {
  symbol position{}, order{};
};
/// The position, or an error if it is not in a cache of this dim.
constexpr symbol checked_position(const parameter_scope& m, int dim, symbol position) {
  const named_scope named(m, "position in the cache");
  return gather(gshard::detail::emit_indices(m.owner(), dim), position);
}
/// The cache of this name, after the step has added its keys or values `now`. Dim 2 counts positions. `now` is cast to the stored element
/// type of the cache, and the result is cast back.
template <class = void>
constexpr symbol extend_cache(const parameter_scope& m, std::string_view name, std::string_view letters, symbol now,
                              const decoding_position& at, param_dtype_option stored) {
  const parameter_scope of_cache = stored.in(m);
  const symbol cache = of_cache.cache(name, letters, init::zeros());
  if (m.owner().failed()) return m.owner().nothing();
  const symbol before = at.order.id < 0 ? cache : gather(cache, at.order, 1, 1);
  const symbol next = dynamic_update_slice(before, in_type_of(of_cache, now), 2, at.position);
  of_cache.update(cache, next);
  return in_type_of(m, next);
}

/// Keys and values of the positions so far, from the caches "key_cache" and "value_cache" [G,B,T,H,D], and of x.
template <class = void>
constexpr keys_and_values cached_keys_and_values(const parameter_scope& m, symbol x, const decoding_position& at,
                                                 const transformer_options& o) {
  const keys_and_values now = project_keys_and_values(m, x, o.param_dtype);
  const symbol keys = extend_cache(m, "key_cache", "GBTHD", now.keys, at, o.cache_dtype);
  return {keys, extend_cache(m, "value_cache", "GBTHD", now.values, at, o.cache_dtype)};
}

}  // namespace detail

/// start_decoding(m, memory, options): computes the keys and values of the memory, which all steps of decoding read. Each layer keeps them
/// in the caches "cross.key_cache" and "cross.value_cache" [G,B,S,H,D].
/// Shapes: memory [G,B,S,M].
/// Communicates: as its einsums: nothing if M is not sharded.
/// Compile time: ranks and dims.
/// Throws: nothing.
/// @see nn::encode, decode_step
template <class Used = void>
constexpr void start_decoding(const parameter_scope& m, here memory, const transformer_options& o) {
  const line_of_call kept(m.owner());
  for (int i = 0; i < o.decoder_layers; ++i) {
    const parameter_scope cross = m.scope(i).scope("cross");
    const named_scope named(cross, "attention");
    const detail::keys_and_values of_memory = detail::project_keys_and_values(cross, memory, o.param_dtype);
    const auto keep = [&](std::string_view name, symbol next) {
      const parameter_scope stored = o.cache_dtype.in(cross);
      const symbol cache = stored.cache(name, "GBSHD", init::zeros());
      if (m.owner().failed()) return;
      // The map gives the cache the sharding of its value.
      const symbol laid_out = map<when_used<Used, detail::second_operand>>(detail::in_type_of(cross, cache), next);
      stored.update(cache, detail::in_type_of(stored, laid_out));
    };
    keep("key_cache", of_memory.keys);
    keep("value_cache", of_memory.values);
  }
}

/// decode_step<"expert">(m, table, ids, position, memory_mask, options, order): the result of `decode` for one position of each sequence.
/// It reads keys and values of earlier positions from caches, and adds the new ones. No checkpoint holds the caches. Feed the positions in
/// order, from 0, after `start_decoding` with the memory. If `order` is given, sequence b continues row order[g,b] of its group, as in beam
/// search.
///
/// It uses for_evaluation(options): it neither draws random numbers nor trains routers. Results are those of `decode` with these options,
/// up to rounding, if no expert is full: set options.moe.routing.evaluation_slots to {E}.
/// Shapes: table [V,M], int32 ids [G,B], an int32 scalar, memory_mask [G,B,S], int32 order [G,B] -> [G,B,M].
/// Communicates: as decode, for one position. With an order and B sharded, also the caches: shard G instead.
/// Compile time: ranks and dims.
/// Throws: as decode; `gshard::error` on all processes, if the position is not in the cache: less than 0, or T or more; if a row of the
/// order is less than 0, or B or more.
/// @see nn::decode, start_decoding, for_evaluation, beam_search, language_model_step
template <fixed_string ExpertAxis>
constexpr symbol decode_step(const parameter_scope& m, symbol table, here ids, symbol position, symbol memory_mask,
                             const transformer_options& options, symbol order = {}) {
  builder& b = m.owner();
  const transformer_options o = for_evaluation(options);
  const line_of_call kept(b);
  if (!b.has(ids) || !b.has(position)) return b.nothing();
  const symbol in_cache = detail::checked_position(m, b.bound_dim('T'), position);
  const symbol id = expand_dims<2>(ids);
  if (b.failed()) return b.nothing();
  const symbol mask = real_tokens(m, id), at = here(gshard::detail::emit_indices(b, id.get().dims[2])) + in_cache;
  routing_summary routing;
  symbol x = embed(m, table, id, at, o);
  for (int i = 0; i < o.decoder_layers; ++i) {
    const parameter_scope layer = m.scope(i), self = layer.scope("self"), cross = layer.scope("cross");
    const symbol q = norm(layer.scope("norm1"), x);
    {
      const named_scope named(self, "attention");
      const detail::keys_and_values so_far = detail::cached_keys_and_values(self, q, {in_cache, order}, o);
      x = x + detail::attend(self, q, so_far, {.position = in_cache}, o.param_dtype);
    }
    const symbol c = norm(layer.scope("norm2"), x);
    {
      const named_scope named(cross, "attention");
      const parameter_scope stored = o.cache_dtype.in(cross);
      const symbol keys = detail::in_type_of(cross, stored.cache("key_cache", "GBSHD", init::zeros()));
      const symbol values = detail::in_type_of(cross, stored.cache("value_cache", "GBSHD", init::zeros()));
      x = x + detail::attend(cross, c, {keys, values}, {.mask = memory_mask}, o.param_dtype);
    }
    x = x + feed_forward_or_moe<ExpertAxis>(layer, i, norm(layer.scope("norm3"), x), mask, o, routing);
  }
  return squeeze<2>(norm(m.scope("norm"), x));
}

}}}  // namespace gshard::v0::nn

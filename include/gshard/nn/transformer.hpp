// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/base/fixed_string.hpp>
#include <gshard/base/list.hpp>
#include <gshard/nn/attention.hpp>
#include <gshard/nn/moe.hpp>
#include <gshard/trace/einsum.hpp>
#include <gshard/trace/embedding.hpp>
#include <gshard/trace/map.hpp>
#include <gshard/trace/named_scope.hpp>
#include <gshard/trace/parameter_scope.hpp>
#include <gshard/trace/random.hpp>
#include <gshard/trace/rows.hpp>
#include <gshard/trace/shape.hpp>

#include <cstddef>

namespace gshard { inline namespace v0 { namespace nn {

/// An encoder-decoder Transformer whose every second feed-forward layer is a mixture of experts (arXiv 2006.16668 section 2.1).
/// Dims: G groups, B sequences a group, S source and T target positions, M model, H heads, D head, F hidden, E experts, V
/// vocabulary, L positions at most.
struct transformer_options {
  int encoder_layers = 2;
  int decoder_layers = 2;
  double dropout = 0.1;
  moe_options moe;
};

/// What the MoE layers of a pass saw, summed over layers.
struct routing_summary {
  list<symbol> load, overflow;

  constexpr void add(const moe_result& r) {
    load.push_back(r.load);
    overflow.push_back(r.overflow);
  }
  static constexpr symbol total(const list<symbol>& terms) {
    symbol sum = terms.front();
    for (std::size_t i = 1; i < terms.size(); ++i) sum = sum + terms[i];
    return sum;
  }
};

/// layer_norm with its own parameters.
constexpr symbol norm(const parameter_scope& m, symbol x) {
  return layer_norm(x, m.param("gamma", "M", init::constant(1)), m.param("beta", "M", init::zeros()));
}

/// wo relu(wi x) with biases.
constexpr symbol feed_forward(const parameter_scope& m, symbol x) {
  const named_scope part(m, "feed-forward");
  const symbol wi = m.param("wi", "MF", init::fan_in("M")), bi = m.param("bi", "F", init::zeros());
  const symbol wo = m.param("wo", "FM", init::fan_in("F")), bo = m.param("bo", "M", init::zeros());
  return einsum<"GBTF,FM->GBTM">(relu(einsum<"GBTM,MF->GBTF">(x, wi) + bi), wo) + bo;
}

/// The feed-forward part of layer `index`: a mixture of experts in every second layer, over tokens of whole groups.
template <fixed_string ExpertAxis>
constexpr symbol feed_forward_or_moe(const parameter_scope& m, int index, symbol x, symbol mask, const transformer_options& o,
                                     routing_summary& routing) {
  if (index % 2 == 0) return feed_forward(m.scope("ffn"), x);
  const moe_result r = moe<ExpertAxis>(m.scope("moe"), merge_dims<1>(x), merge_dims<1>(mask), o.moe);
  routing.add(r);
  return split_dim<1>(r.y);
}

/// 1 where a token is real, 0 where it is padding (id 0).
constexpr symbol real_tokens(const parameter_scope& m, symbol ids) {
  return map<[](auto id) { return 0 < id ? decltype(id)(1) : decltype(id)(0); }>(cast(ids, m.type()));
}
/// 0 where a key may be attended to, -1e9 at padding.
constexpr symbol padding_bias(symbol mask) {
  return map<[](auto real) { return (real - 1) * 1e9f; }>(mask);
}

/// Token and position embeddings, scaled and dropped out. positions: int32, the last dim of ids.
constexpr symbol embed(const parameter_scope& m, symbol table, symbol ids, symbol positions, const transformer_options& o) {
  const symbol at = gather(m.param("position", "LM", init::normal(0.02)), positions);
  return dropout(scale_by<"M">(gather(table, ids), 0.5) + at, o.dropout);
}

/// Encodes source ids [G,B,S]: [G,B,S,M]. mask: real_tokens(m, ids).
template <fixed_string ExpertAxis>
constexpr symbol encode(const parameter_scope& m, symbol table, symbol ids, symbol mask,
                        const transformer_options& o, routing_summary& routing) {
  const symbol bias = padding_bias(mask);
  symbol x = embed(m, table, ids, iota<"S">(m), o);
  for (int i = 0; i < o.encoder_layers; ++i) {
    const parameter_scope layer = m.scope(i);
    const symbol q = norm(layer.scope("norm1"), x);
    x = x + dropout(attention(layer.scope("self"), q, q, bias, o.dropout), o.dropout);
    const symbol f = norm(layer.scope("norm2"), x);
    x = x + dropout(feed_forward_or_moe<ExpertAxis>(layer, i, f, mask, o, routing), o.dropout);
  }
  return norm(m.scope("norm"), x);
}

/// Decodes target ids [G,B,T], each position seeing those before it and the memory [G,B,S,M]: [G,B,T,M].
template <fixed_string ExpertAxis>
constexpr symbol decode(const parameter_scope& m, symbol table, symbol ids, symbol mask, symbol memory, symbol memory_mask,
                        const transformer_options& o, routing_summary& routing) {
  const symbol causal = map<[](auto q, auto k) { return k <= q ? decltype(q)(0) : decltype(q)(-1e9f); }>(
      cast(iota<"TT">(m, 0), m.type()), cast(iota<"TT">(m, 1), m.type()));
  const symbol bias = padding_bias(memory_mask);
  symbol x = embed(m, table, ids, iota<"T">(m), o);
  for (int i = 0; i < o.decoder_layers; ++i) {
    const parameter_scope layer = m.scope(i);
    const symbol q = norm(layer.scope("norm1"), x);
    x = x + dropout(attention(layer.scope("self"), q, q, causal, o.dropout), o.dropout);
    const symbol c = norm(layer.scope("norm2"), x);
    x = x + dropout(attention(layer.scope("cross"), c, memory, bias, o.dropout), o.dropout);
    const symbol f = norm(layer.scope("norm3"), x);
    x = x + dropout(feed_forward_or_moe<ExpertAxis>(layer, i, f, mask, o, routing), o.dropout);
  }
  return norm(m.scope("norm"), x);
}

}}}  // namespace gshard::v0::nn

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Multi-head attention, the attention layer of a Transformer.

#include <gshard/core/trace/broadcast.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/named_scope.hpp>
#include <gshard/core/trace/parameter_scope.hpp>
#include <gshard/models/rotary.hpp>
#include <gshard/moe/layer/weight.hpp>
#include <gshard/ops/attention/attention.hpp>
#include <gshard/ops/index/dynamic_slice.hpp>
#include <gshard/ops/random/dropout.hpp>
#include <gshard/ops/rows/softmax.hpp>

namespace gshard { inline namespace v0 { namespace nn {

/// attention(m, query, memory, bias, rate, param_dtype): multi-head attention, softmax(q k^T / sqrt(D) + bias) v per head. `bias` is 0
/// where a key may be seen, and very negative elsewhere. `rate`: dropout of the attention weights. Parameters: wq, wk, wv [M,H,D],
/// wo [H,D,M]. @see param_dtype_option
/// Shapes: query [G,B,Q,M], memory [G,B,K,M]; bias [G,B,K] for padding, or dims that match [G,B,H,Q,K], such as [Q,K] -> [G,B,Q,M].
/// Communicates: as its einsums: with heads sharded, one all_reduce of the result.
/// Compile time: ranks and dims.
/// Throws: nothing.
/// @see nn::encode, softmax
template <class = void>
constexpr symbol attention(const parameter_scope& m, here query, symbol memory, symbol bias, double rate = 0,
                           param_dtype_option param_dtype = {}) {
  const line_of_call kept(m.owner());
  const named_scope named(m, "attention");
  const auto weight = [&](std::string_view name, std::string_view letters, std::string_view fan_in) {
    return detail::weight(m, name, letters, init::fan_in(fan_in), param_dtype);
  };
  const symbol wq = weight("wq", "MHD", "M"), wk = weight("wk", "MHD", "M"), wv = weight("wv", "MHD", "M"), wo = weight("wo", "HDM", "HD");
  const symbol q = scale_by<"D">(einsum<"GBQM,MHD->GBQHD">(query, wq), -0.5);
  const symbol k = einsum<"GBKM,MHD->GBKHD">(memory, wk);
  const symbol v = einsum<"GBKM,MHD->GBKHD">(memory, wv);
  const symbol scores = einsum<"GBQHD,GBKHD->GBHQK">(q, k);
  if (!m.owner().failed()) {
    dim_list keys = memory.get().dims;
    keys.pop_back();
    if (bias.get().dims == keys) bias = broadcast<"GBK,GBHQK->GBHQK">(bias, scores);
  }
  const symbol weights = dropout(softmax(scores + bias), rate);
  return einsum<"GBQHD,HDM->GBQM">(einsum<"GBHQK,GBKHD->GBQHD">(weights, v), wo);
}

/// Options of a layer of attention. A query sees all keys by default. `mask` hides keys with mask 0, `causal` hides later keys.
struct attention_layer_options {
  bool causal = false;
  bool grouped = false;    ///< R heads of queries share a head of keys and values.
  double rotary_base = 0;  ///< Above 0: queries and keys are rotated by their positions. @see nn::rotary
  symbol mask{};           ///< [G,B,K]: 1, or 0 at keys that no query sees, such as padding.
  double dropout = 0;      ///< The rate of dropout of the attention weights.
  param_dtype_option param_dtype{};  ///< The stored element type of the parameters.
};

/// attention(m, query, memory, options): multi-head attention that never stores the matrix of all scores. Parameters: wq, wk, wv [M,H,D]
/// and wo [H,D,M]; if grouped, wq [M,H,R,D] and wo [H,R,D,M].
/// Shapes: query [G,B,Q,M], memory [G,B,K,M] -> [G,B,Q,M].
/// Communicates: as gshard::attention and its einsums: with heads sharded, one all_reduce of the result.
/// Compile time: ranks and dims.
/// Throws: `gshard::error` when the program is bound, if D is odd and positions are rotated.
/// @see attention_layer_options, gshard::attention
template <class = void>
constexpr symbol attention(const parameter_scope& m, here query, symbol memory, const attention_layer_options& o) {
  builder& b = m.owner();
  const line_of_call kept(b);
  const named_scope named(m, "attention");
  const auto weight = [&](std::string_view name, std::string_view letters, std::string_view fan_in) {
    return detail::weight(m, name, letters, init::fan_in(fan_in), o.param_dtype);
  };
  const symbol wq = weight("wq", o.grouped ? "MHRD" : "MHD", "M"), wk = weight("wk", "MHD", "M"), wv = weight("wv", "MHD", "M");
  const symbol wo = o.grouped ? weight("wo", "HRDM", "HRD") : weight("wo", "HDM", "HD");
  symbol q = o.grouped ? einsum<"GBQM,MHRD->GBQHRD">(query, wq) : einsum<"GBQM,MHD->GBQHD">(query, wq);
  symbol k = einsum<"GBKM,MHD->GBKHD">(memory, wk);
  const symbol v = einsum<"GBKM,MHD->GBKHD">(memory, wv);
  if (o.rotary_base > 0 && !b.failed()) {
    const auto rotated = [&](symbol x) { return rotary(x, gshard::detail::emit_indices(b, x.get().dims[2]), 2, o.rotary_base); };
    q = rotated(q);
    k = b.failed() ? k : rotated(k);
  }
  const symbol y = gshard::attention(q, k, v, {.causal = o.causal, .mask = o.mask, .dropout = o.dropout});
  return o.grouped ? einsum<"GBQHRD,HRDM->GBQM">(y, wo) : einsum<"GBQHD,HDM->GBQM">(y, wo);
}

}}}  // namespace gshard::v0::nn

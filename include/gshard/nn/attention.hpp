// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Multi-head attention, the attention layer of a Transformer.

#include <gshard/trace/broadcast.hpp>
#include <gshard/trace/einsum.hpp>
#include <gshard/trace/map.hpp>
#include <gshard/trace/named_scope.hpp>
#include <gshard/trace/parameter_scope.hpp>
#include <gshard/trace/random.hpp>
#include <gshard/trace/rows.hpp>

namespace gshard { inline namespace v0 { namespace nn {

/// attention(m, query, memory, bias, rate): multi-head attention, softmax(q k^T / sqrt(D) + bias) v per head. `bias` is 0 where a key may
/// be seen, and very negative elsewhere. `rate`: dropout of the attention weights. Parameters: wq, wk, wv [M,H,D], wo [H,D,M].
/// Shapes: query [G,B,Q,M], memory [G,B,K,M]; bias [G,B,K] for padding, or dims that match [G,B,H,Q,K], such as [Q,K] -> [G,B,Q,M].
/// Communicates: what its einsums do: with heads sharded, one all_reduce of the result.
/// Compile time: ranks and dims.
/// Throws: nothing.
/// @see nn::encode, softmax
constexpr symbol attention(const parameter_scope& m, symbol query, symbol memory, symbol bias, double rate = 0) {
  const named_scope named(m, "attention");
  const symbol wq = m.param("wq", "MHD", init::fan_in("M")), wk = m.param("wk", "MHD", init::fan_in("M"));
  const symbol wv = m.param("wv", "MHD", init::fan_in("M")), wo = m.param("wo", "HDM", init::fan_in("HD"));
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

}}}  // namespace gshard::v0::nn

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Attention on tensors outside of programs.

#include <gshard/eager/eager_call.hpp>
#include <gshard/ops/attention/attention.hpp>

#if GSHARD_HEADER_ONLY
#include <gshard/ops/attention/attention_kernel.hpp>
#endif

namespace gshard { inline namespace v0 {

namespace detail {
template <bool Causal>
inline constexpr auto attention_model = [](auto&, auto q, auto k, auto v) { return attention(q, k, v, {.causal = Causal}); };

/// The factors of queries [batch..., Q, H, D] or [batch..., Q, H, R, D]. Keys and values have the factors 0, 1, ...
template <int Rank, int KeyRank>
inline constexpr short_list query_factors = [] {
  short_list factors = counting(KeyRank);
  if (KeyRank >= 3 && Rank >= KeyRank && Rank <= KeyRank + 1) {
    factors.set(KeyRank - 3, max_rank);
    if (Rank > KeyRank) factors.insert(KeyRank - 1, max_rank + 1);
    return factors;
  }
  return counting(Rank);
}();
}  // namespace detail

/// attention(q, k, v) = softmax(q k^T / sqrt(D)) v for every head, on tensors; attention<true>(q, k, v) is causal. Use `evaluate` for
/// masks, positions and dropout.
/// Shapes: q [batch..., Q, H, D] or [batch..., Q, H, R, D]; k and v [batch..., K, H, D] -> the shape of q.
/// Communicates: nothing if the operands shard the batch dims, H or Q alike. Sharded keys and depths are gathered.
/// Compile time: ranks; one real element type; that operands are complete.
/// Throws: `gshard::error` if operands differ in an extent.
/// @see evaluate, ops/attention/attention.hpp
template <bool Causal = false, class T, class Q, class K, class V>
auto attention(const tensor<T, Q>& q, const tensor<T, K>& k, const tensor<T, V>& v) {
  constexpr auto letters_of_q = detail::letters_of_factors<detail::query_factors<Q::rank, K::rank>>();
  return detail::run_verb<detail::attention_model<Causal>, letters_of_q, detail::first_letters<K::rank>, detail::first_letters<V::rank>>(
      "attention", q, k, v);
}

}}  // namespace gshard::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The attributes that only the rewrite, the gradient and the kernel of an operation read. `each` lists them by name.

#include <gshard/ir/attributes.hpp>

#include <cstdint>

namespace gshard { inline namespace v0 {

struct scale_attributes {
  double power = 0;

  static constexpr void each(auto& all, auto f) { f("power", all.power); }
};
/// sort, top_k.
struct sort_attributes {
  std::int32_t count = 0;   ///< k of top_k, and 0 for its merge of blocks
  bool descending = false;  ///< the largest first
  bool nan_first = false;   ///< NaN also precedes the smallest element

  static constexpr void each(auto& all, auto f) { f("count", all.count), f("descending", all.descending), f("nan_first", all.nan_first); }
};
/// gather, scatter_add.
struct gather_attributes {
  std::int32_t batch = 0;  ///< the number of leading batch dims

  static constexpr void each(auto& all, auto f) { f("batch", all.batch); }
};
struct cumsum_attributes {
  bool exclusive = false;  ///< the sum at i lacks element i
  bool reverse = false;    ///< sums from the end

  static constexpr void each(auto& all, auto f) { f("exclusive", all.exclusive), f("reverse", all.reverse); }
};
struct attention_attributes {
  bool causal = false;  ///< a query sees the keys up to its own index
  double dropout = 0;

  static constexpr void each(auto& all, auto f) { f("causal", all.causal), f("dropout", all.dropout); }
};
struct dropout_attributes {
  double rate = 0;

  static constexpr void each(auto& all, auto f) { f("rate", all.rate); }
};
struct random_attributes {
  bool normal = false;  ///< standard normal numbers, not uniform ones

  static constexpr void each(auto& all, auto f) { f("normal", all.normal); }
};
/// cast between a real and a complex type.
struct cast_attributes {
  bool imaginary = false;  ///< to or from the imaginary part, not the real one

  static constexpr void each(auto& all, auto f) { f("imaginary", all.imaginary); }
};
struct layer_norm_attributes {
  double epsilon = 0;

  static constexpr void each(auto& all, auto f) { f("epsilon", all.epsilon); }
};
struct cross_entropy_attributes {
  double smoothing = 0;

  static constexpr void each(auto& all, auto f) { f("smoothing", all.smoothing); }
};
struct gating_attributes {
  std::int32_t k = 0;
  std::uint32_t operands = 0;  ///< a mask of the optional operands. @see gating_operand
  second_expert second = second_expert::random;
  bool by_experts = false;        ///< experts choose tokens
  bool gates_as_weights = false;  ///< weights are the gates, not divided by their sum
  double threshold = 0;           ///< of second choices

  static constexpr void each(auto& all, auto f) {
    f("k", all.k), f("operands", all.operands), f("second", all.second), f("by_experts", all.by_experts);
    f("gates_as_weights", all.gates_as_weights), f("threshold", all.threshold);
  }
};
struct adam_attributes {
  double beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;

  static constexpr void each(auto& all, auto f) {
    f("beta1", all.beta1), f("beta2", all.beta2), f("epsilon", all.epsilon), f("weight_decay", all.weight_decay);
  }
};

}}  // namespace gshard::v0

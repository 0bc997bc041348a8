// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The attributes of a node: the settings of its operation, in addition to its tensors and its rule.

#include <gshard/ir/custom_operation.hpp>
#include <gshard/ir/dim.hpp>
#include <gshard/ir/pointwise.hpp>
#include <gshard/ir/reduction.hpp>

#include <cstdint>

namespace gshard { inline namespace v0 {

/// The tokens that use their second expert. random: tokens with 2 * g2 / (g1 + g2) > U(0, 1), as in Algorithm 1 of arXiv 2006.16668.
/// above_threshold: tokens with g2 / (g1 + g2) > threshold. sampled: all, but the second expert is drawn in proportion to the other gates.
enum class second_expert : std::uint8_t { random, always, above_threshold, sampled };

/// The change that a reshape makes at its dim. merge and split, insert and remove are inverses.
enum class reshape_kind : std::uint8_t { unchanged, merge, split, insert, remove, rename };

/// The reaction of an optimizer to a loss, a gradient or an updated parameter that is NaN or infinite.
/// stop: the run throws not_finite_error. skip: no parameter is updated, as if the batch were absent. ignore: nothing.
enum class not_finite : std::uint8_t { stop, skip, ignore };

/// An operation sets the attributes that name it here. The others keep their defaults.
struct attributes {
  std::int32_t dim = 0;     ///< argmax, block_sum, concat, cumsum, gather, iota, reshape, scatter_add, scatter_along, sort, top_k.
  std::uint32_t axes = 0;   ///< Communication: a mask of mesh axes. Devices that differ only along them exchange data.
  std::uint32_t moves = 0;  ///< A combined collective: the kind of move of each operand. @see kind_of_move
  std::int32_t ring_operand = 0;  ///< looped_einsum: the operand whose blocks are passed on; the number of operands if partial sums are.
  std::int32_t count = 0;         ///< top_k: k, and 0 for its merge of blocks. top_k_gating: k. gather, scatter_add: batch dims.
  std::uint32_t operands = 0;     ///< top_k_gating: a mask of its optional operands. @see gating_operand
  std::int32_t window = 0;        ///< A merge: the row of the window through which the first dim reads the result.
  std::int32_t key = 0;           ///< attention, dropout, random, top_k_gating, nodes of loops: identifies random numbers.
  std::int32_t loop = 0;          ///< carry, loop_begin, loop_test, loop_end: the number of the loop.
  reduction combine = reduction::sum;              ///< reduce, pool; for all: the reduction that completes partial results.
  reshape_kind change = reshape_kind::unchanged;   ///< reshape.
  second_expert second = second_expert::random;    ///< top_k_gating: the use of second choices.
  not_finite if_not_finite = not_finite::ignore;   ///< adam, map: for an update. skip: the last operand is not 0 if the step is skipped.
  bool by_experts = false;       ///< top_k_gating: experts choose tokens.
  bool gates_as_weights = false; ///< top_k_gating: weights are the gates, not divided by their sum.
  bool exclusive = false;        ///< cumsum: the sum at i lacks element i.
  bool reverse = false;          ///< cumsum: sums from the end. Nodes of loops: the last iteration's random numbers first.
  bool descending = false;       ///< sort, top_k: the largest first.
  bool nan_first = false;        ///< top_k: NaN also precedes the smallest element.
  bool of_blocks = false;        ///< cumsum, top_k: computes a part for each block, so that its strategy is the sharding of its result.
  bool by_blocks = false;        ///< argmax: gathers the best element of every block. Set by `decompose`.
  bool defers_sums = false;      ///< carry: a sum over iterations, whose sums over devices are completed after the loop.
  bool may_move = false;         ///< annotate: readers may reshard it, whatever the strictness of the program.
  bool gradient_as_operand = false;  ///< annotate: the gradient has the sharding of the operand, not of the result.
  bool causal = false;           ///< attention: a query sees the keys up to its own index.
  bool rounds_to_bf16 = false;   ///< einsum, looped_einsum and grouped products: factors are rounded to bf16.
  bool normal = false;           ///< random: standard normal numbers, not uniform ones.
  bool imaginary = false;        ///< cast between a real and a complex type: to or from the imaginary part, not the real one.
  bool inside = false;           ///< strided_slice: the windows must not read outside the operand. gather: no id is outside.
  double fill = 0;               ///< strided_slice, pad, roll: the result where the windows read nothing.
  double factor = 1, power = 0;  ///< scale: x * factor * (product of the extents of `dims`)^power.
  double epsilon = 0;            ///< layer_norm, adam.
  double smoothing = 0;          ///< cross_entropy.
  double rate = 0;               ///< attention, dropout. top_k_gating: the threshold of second choices.
  double beta1 = 0, beta2 = 0, weight_decay = 0;  ///< adam.
  const pointwise* function = nullptr;            ///< map, per_shard.
  const custom_operation* custom = nullptr;       ///< custom.
  const char* label = nullptr;                    ///< In errors: the name of the tensor of a check_finite; the verb of a reshape.
  dim_list dims = {};  ///< scale: see `power`. convolution, by dim of operand 0: 1 + the factor of its taps.
                       ///< top_k_gating: the dim of slots. expert_group_slots: the dims of a group's experts and of their slots.
                       ///< expert_rows: the same, and the dim of the rows of a group.
                       ///< loop_begin: the dim whose extent is the number of iterations, if there is one.
};

}}  // namespace gshard::v0

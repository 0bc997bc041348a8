// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/base/compiler.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 {

/// Every operation a program or a plan may contain. One line here and one in `op_table`.
enum class op : std::uint8_t {
  // arithmetic
  einsum,
  map,
  scale,
  reduce,
  argmax,
  cast,
  // rows
  softmax,
  softmax_grad,
  layer_norm,
  layer_norm_grad,
  cross_entropy,
  cross_entropy_grad,
  block_cross_entropy,
  cumsum,
  block_sum,
  sort,
  top_k,
  scatter_along,
  // indices
  gather,
  scatter_add,
  iota,
  // shape
  reshape,
  annotate,
  // windows
  strided_slice,
  pad,
  reverse,
  roll,
  concat,
  convolution,
  pool,
  pool_grad,
  // local functions of the user
  per_shard,
  // random
  dropout,
  // mixture of experts
  top2_gating,
  top2_gating_grad,
  one_hot,
  one_hot_grad,
  dispatch,
  combine,
  combine_weight_grad,
  // optimisers
  adam,
  // loops whose turns are counted at run time
  carry,
  loop_begin,
  loop_test,
  loop_end,
  // communication, put into plans by the partitioner
  slice,
  all_gather,
  all_reduce,
  reduce_scatter,
  all_to_all,
  collective_permute,
  looped_einsum,
  count_
};

struct op_traits {
  op kind;
  std::string_view name;
  /// Moves data between devices.
  bool collective = false;
  /// The result shares the storage of the first operand.
  bool alias = false;
  /// So many operands are read through the windows of the node's rule, dim by dim.
  int windowed = 0;
};

inline constexpr std::array<op_traits, std::size_t(op::count_)> op_table{{
    {op::einsum, "einsum"},
    {op::map, "map"},
    {op::scale, "scale"},
    {op::reduce, "reduce"},
    {op::argmax, "argmax"},
    {op::cast, "cast"},
    {op::softmax, "softmax"},
    {op::softmax_grad, "softmax_grad"},
    {op::layer_norm, "layer_norm"},
    {op::layer_norm_grad, "layer_norm_grad"},
    {op::cross_entropy, "cross_entropy"},
    {op::cross_entropy_grad, "cross_entropy_grad"},
    {op::block_cross_entropy, "block_cross_entropy"},
    {op::cumsum, "cumsum"},
    {op::block_sum, "block_sum"},
    {op::sort, "sort"},
    {op::top_k, "top_k"},
    {op::scatter_along, "scatter_along"},
    {op::gather, "gather"},
    {op::scatter_add, "scatter_add"},
    {op::iota, "iota"},
    {op::reshape, "reshape", false, true, 1},
    {op::annotate, "annotate", false, true},
    {op::strided_slice, "strided_slice", false, false, 1},
    {op::pad, "pad", false, false, 1},
    {op::reverse, "reverse", false, false, 1},
    {op::roll, "roll", false, false, 1},
    {op::concat, "concat"},
    {op::convolution, "convolution", false, false, 1},
    {op::pool, "pool", false, false, 1},
    {op::pool_grad, "pool_grad", false, false, 2},
    {op::per_shard, "per_shard"},
    {op::dropout, "dropout"},
    {op::top2_gating, "top2_gating"},
    {op::top2_gating_grad, "top2_gating_grad"},
    {op::one_hot, "one_hot"},
    {op::one_hot_grad, "one_hot_grad"},
    {op::dispatch, "dispatch"},
    {op::combine, "combine"},
    {op::combine_weight_grad, "combine_weight_grad"},
    {op::adam, "adam"},
    {op::carry, "carry"},
    {op::loop_begin, "loop_begin"},
    {op::loop_test, "loop_test"},
    {op::loop_end, "loop_end"},
    {op::slice, "slice"},
    {op::all_gather, "all_gather", true},
    {op::all_reduce, "all_reduce", true},
    {op::reduce_scatter, "reduce_scatter", true},
    {op::all_to_all, "all_to_all", true},
    {op::collective_permute, "collective_permute", true},
    {op::looped_einsum, "looped_einsum", true},
}};

constexpr const op_traits& traits(op kind) { return op_table[std::size_t(kind)]; }
constexpr std::string_view name(op kind) { return traits(kind).name; }
/// The operand that holds ids or labels, which are checked when the operation runs, or -1.
constexpr int checked_operand(op kind) {
  switch (kind) {
    case op::gather:
    case op::cross_entropy:
    case op::cross_entropy_grad:
    case op::block_cross_entropy: return 1;
    case op::scatter_add: return 0;
    default: return -1;
  }
}
/// Brings elements to other places and computes nothing.
constexpr bool only_moves(op kind) {
  return kind == op::strided_slice || kind == op::pad || kind == op::reverse || kind == op::roll || kind == op::concat;
}
/// Whether an operation may throw on one device alone: where ids are checked, and in the user's functions of shards.
constexpr bool may_fail(op kind) { return kind == op::per_shard || checked_operand(kind) >= 0; }
/// Steps of a loop itself. @see trace/loop.hpp
constexpr bool is_of_loop(op kind) { return kind >= op::carry && kind <= op::loop_end; }

static_assert([] {
  for (std::size_t i = 0; i < op_table.size(); ++i)
    if (op_table[i].kind != op(i)) return false;
  return true;
}());

}}  // namespace gshard::v0

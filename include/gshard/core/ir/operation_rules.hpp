// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The functions of an operation that tracing and passes call, such as its gradient.

#include <gshard/core/base/list_view.hpp>
#include <gshard/core/base/optional_function.hpp>
#include <gshard/core/base/packed_list.hpp>
#include <gshard/core/ir/op.hpp>

#include <cstdint>

namespace gshard { inline namespace v0 {

struct node;
struct graph;
struct symbol;

namespace detail {
class differentiator;
class decomposer;
class decompose_cost;
}  // namespace detail

/// The functions of an operation that passes call. A graph knows those of its nodes. Plans do not have them, so that programs compile only
/// what the compiler runs.
struct operation_rules {
  op_ref of;
  /// Adds the gradients of the operands of a node, from the gradients of its results. None: it has no gradient. @see differentiator
  optional_function<void(detail::differentiator&, const node&)> gradient{};
  /// Rewrites a node whose dim `at`, its line, is sharded, as operations on blocks. An operation with `lines` has this and its cost.
  optional_function<void(detail::decomposer&, const node&, int at)> by_blocks{};
  optional_function<std::int64_t(const detail::decompose_cost&)> cost_by_blocks{};
  /// Replaces an einsum whose first operand the operation made. Returns an empty symbol to keep the einsum.
  optional_function<symbol(list_view<symbol> operands, list_view<short_list> factors, const short_list& output, const dim_list& dims)>
      einsum_with{};
  /// The tensor that counts the rows in use of a node's result, or -1. Other rows are zero. @see row_counts
  optional_function<std::int32_t(const graph&, const node&)> row_counts{};
};

namespace detail {
inline constexpr operation_rules no_rules{};
}  // namespace detail

}}  // namespace gshard::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Records that the builder of a program keeps in addition to the graph, for gradients and for later verbs.

#include <gshard/core/base/list.hpp>
#include <gshard/core/base/packed_list.hpp>
#include <gshard/core/ir/op.hpp>

#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 {

namespace detail {
class backward_walk;
}  // namespace detail

/// The parts of a scan in a program, for its gradient: the numbers of tensors and nodes.
struct scan_record {
  struct state {
    std::int32_t start = -1, now = -1, next = -1, after = -1;
    std::int32_t history = -1;  // the states before each step, stacked
  };
  /// A tensor and its row in a step.
  struct stack {
    std::int32_t stacked = -1, row = -1;
    std::int32_t last_row = -1;  // the index of the last row, if later steps also read it
  };
  std::int32_t loop = 0;
  std::int32_t begin = 0, body = 0, close = 0, end = 0;  // nodes: the first; the first of the body; the first after it; loop_end
  std::int32_t last = -1, step = -1;                     // the index of the last step, and of the current one
  list<state> states;
  list<stack> inputs, outputs;
  list<stack> saved;  // results of steps that the gradient does not recompute
  list<std::int32_t> earlier;  // each state of `lag` steps earlier; or empty
  std::int64_t lag = 0;
  /// Appends the loop of the gradient.
  void (*gradient)(detail::backward_walk&, const scan_record&) = nullptr;
};

/// A node that reads the operand of a broadcast, a conjugate or a one-hot in place of its result. Gradients with respect to the result need
/// this record.
struct bypass {
  std::int32_t result = -1;  // the first result of the node; -1: a verb whose operand is a whole gating
  std::int32_t tensor = -1;  // the operand of the verb
  int operand = 0;           // its position
  short_list factors;        // of its dims
  op_ref kind{};             // of the node that would read it
  std::string_view verb{};   // that reads it, if there is no such node
};

/// A dim that a program has split in two: its extent is their product.
struct split_dims {
  int whole, first, second;
};

}}  // namespace gshard::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Compile-time faults of programs, specs and equations, and the diagnostic that reports the first one.

#include <gshard/base/name.hpp>

#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 {

/// The faults of a program, a spec or an equation at compile time. Each has one sentence in pass/check.hpp, and the same one in
/// report/diagnostic.hpp for run time.
enum class fault : std::uint8_t {
  nothing,
  refused_call,           // a verb was called wrongly; the compiler has printed the error (trace/wrong_calls.hpp)
  unknown_axis,           // a spec names an axis that the mesh does not have
  axis_used_twice,        // a spec names one axis twice
  rank_mismatch,          // a spec, an equation or an operation expects another number of dims
  not_a_scalar,           // a loss, a rate, a condition or a count has dims
  unknown_letter,         // dims are declared by letters A-Z, a-z
  foreign_letter,         // an initializer names a dim that its parameter does not have
  too_many_dims,          // a program has at most 256 different dims
  malformed_equation,     // at a column
  index_in_no_operand,    // an output index that no operand has
  index_repeated,         // an output index that occurs twice
  operand_count,          // an equation has another number of operands than its call
  dims_differ,            // one index letter is used for two different dims
  dims_do_not_broadcast,  // no way to line up the dims of an elementwise operation
  ambiguous_dims,         // several ways to line them up
  index_not_kept,         // broadcast's output lacks an index of its first operand, or has a diagonal of it
  bad_range,              // a range or window that is invalid or outside its dim
  no_taps,                // a convolution's equation has no dim with a tap, or windows for more dims
  wrong_type,             // an operand has another element type than the operation needs
  does_not_divide,        // a static extent is not a multiple of the static extents of its axes
  incomplete_output,      // a declared sharding has a partial sum
  sum_not_pending,        // a sharding asks for a partial sum that the tensor does not have
  not_differentiable,     // a gradient was asked for through an operation that has none
  gradient_of_loop,       // a gradient was asked for through a while loop
  used_outside_loop,      // a tensor that a loop makes is used after the loop
  update_in_loop,         // a parameter is updated in place by every iteration of a loop
  duplicate_name,         // two parameters have one name
  name_too_long,
  constant_loss,  // a loss depends on none of the parameters to train
  no_terms,  // the sum of the auxiliary losses was asked for, and there are none
  read_after_update,  // a parameter is read after the node that updates it in place
  not_annotated,      // an operand whose sharding must be declared is not annotated in all its dims
  no_device_dim,      // a tensor lacks the dim that counts the devices along an axis
  device_dim_twice,   // a tensor has that dim twice
  device_dim_left,    // the result of a region has such a dim, and the region's spec names no dim for its axis
  axis_not_first,     // the axis of a region shards a dim after another axis
  no_such_assignment, // pieces that no sharding over mesh axes makes, or devices that are not the mesh's
  no_such_order,      // a spec's device order does not have each device of the mesh once
  implicit_gather,    // visible: an operand would be gathered implicitly
  implicit_move,      // strict: an operand would be resharded implicitly
  implicit_sum,       // strict: a partial sum would be completed implicitly
  unknown_extent,     // a search for shardings needs the extent of every letter and axis
  too_little_memory,  // no sharding leaves every device within its memory limit
};

/// The first fault of a program, with the words of its sentence.
struct diagnostic {
  fault what = fault::nothing;
  tensor_name subject;  // tensor, operation or equation
  axis_name word;       // axis or index letter
  int first = -1;       // column, expected number, ...
  int second = -1;
  int line = 0;  // of the program, of the verb or the operation

  constexpr explicit operator bool() const { return what != fault::nothing; }
  constexpr void report(fault f, std::string_view about, std::string_view w = {}, int a = -1, int b = -1) {
    if (what != fault::nothing) return;
    what = f;
    subject = tensor_name(about);
    word = axis_name(w);
    first = a;
    second = b;
  }
  /// The line of the operation at which a pass found the fault, unless a verb has found it.
  constexpr void name_line(std::uint32_t of_operation) {
    if (what != fault::nothing && line == 0) line = int(of_operation);
  }
};

}}  // namespace gshard::v0

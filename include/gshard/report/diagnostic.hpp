// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Text of diagnostics: the sentences that the compiler prints for a wrong program.

#include <gshard/ir/fault.hpp>

#include <string>
#include <string_view>

namespace gshard { inline namespace v0 {

namespace detail {

/// The sentence of a fault, word for word as the compiler prints it (pass/check.hpp).
constexpr std::string_view sentence(fault what) {
  switch (what) {
    case fault::nothing: return "";
    case fault::refused_call: return "a verb is called with other arguments than it takes";
    case fault::unknown_axis: return "a partition spec names an axis that the mesh does not have";
    case fault::axis_used_twice: return "a partition spec uses one mesh axis twice";
    case fault::rank_mismatch: return "a tensor has another number of dims than its partition spec, equation or operation expects";
    case fault::not_a_scalar: return "a loss, a rate, a condition or a count is a scalar: take the sum or the mean first";
    case fault::unknown_letter: return "dims are declared by at most 8 characters, all of them letters";
    case fault::foreign_letter: return "the initial values of a parameter depend on a dim that it does not have";
    case fault::too_many_dims: return "a program has at most 256 different dims";
    case fault::malformed_equation: return "malformed einsum equation: expected index letters, one ',' between operands and one '->'";
    case fault::index_in_no_operand: return "an output index of the einsum equation is in no operand";
    case fault::index_repeated: return "an output index of the einsum equation occurs twice";
    case fault::operand_count: return "the einsum equation has another number of operands than the call";
    case fault::dims_differ: return "one index or operation has two different dims";
    case fault::dims_do_not_broadcast: return "the dims of an operand are not among the dims of the largest operand, in their order";
    case fault::ambiguous_dims:
      return "the dims of an operand match those of the largest operand in several ways: state the intended one by broadcast";
    case fault::index_not_kept: return "broadcast keeps every index of its first operand: each occurs there once, and in the output";
    case fault::bad_range:
      return "a range, count, window or priority has no meaning: it runs backwards, goes beyond its limits, or is given twice";
    case fault::no_taps:
      return "a convolution needs a tap (lower-case letter of its second operand) for every dim that a window moves along";
    case fault::wrong_type: return "an operand has another element type than the operation takes";
    case fault::does_not_divide: return "a static extent is not a multiple of the static extents of the mesh axes that shard it";
    case fault::incomplete_output: return "a partial sum is used where a complete tensor is declared";
    case fault::sum_not_pending: return "a sharding asks for a partial sum that the tensor does not have";
    case fault::not_differentiable: return "no gradient is known for an operation";
    case fault::gradient_of_loop:
      return "a loop with a run-time trip count has no gradient: use repeat<n>, or stop_gradient";
    case fault::used_outside_loop: return "a tensor of a loop's body is used outside of the loop: let the loop carry it";
    case fault::update_in_loop: return "parameters are not updated in loops with a run-time trip count";
    case fault::duplicate_name: return "two parameters with different dims, initial values or partition specs have one name";
    case fault::name_too_long: return "a parameter's full name is longer than 63 characters";
    case fault::constant_loss: return "a loss depends on no parameter: minimize takes the loss first, then the rate";
    case fault::no_terms: return "no layer has given an auxiliary loss";
    case fault::read_after_update: return "a parameter is read after it was updated in place";
    case fault::not_annotated: return "an operand of a local function must be annotated in all its dims";
    case fault::no_device_dim:
      return "a tensor lacks the dim that counts the devices along an axis: verbs on shards, and specs with that axis, need it";
    case fault::device_dim_twice:
      return "a tensor has the dim that counts the devices along an axis twice: verbs on shards cannot tell which is meant";
    case fault::device_dim_left:
      return "the result of a per_shard region differs between the devices along its axis, which its spec does not name";
    case fault::axis_not_first:
      return "the axis of a per_shard region shards a dim after another axis: enter the regions of a dim's axes in their order";
    case fault::no_such_assignment:
      return "no sharding over static mesh axes makes the pieces of an assignment, or its devices are not those of the mesh";
    case fault::no_such_order:
      return "a partition spec orders devices that are not those of the mesh, each once, or the mesh's extents are not static";
    case fault::implicit_gather: return "an operand would be gathered implicitly (visible): annotate it, or say may_move(operand)";
    case fault::implicit_move:
      return "an operand would be resharded implicitly (strict): annotate it, or say may_move(operand)";
    case fault::implicit_sum:
      return "a sum over a sharded index would be completed implicitly (strict): annotate the result with its sharding";
    case fault::unknown_extent: return "to choose shardings, the extent of every letter and of every mesh axis must be known";
    case fault::too_little_memory: return "no sharding was found that keeps every device within its memory limit";
  }
  return "";
}

/// The details of a diagnostic, which the compiler prints as types.
inline std::string words(const diagnostic& d) {
  const auto number = [](int n) { return std::to_string(n); };
  const auto quoted = [](std::string_view s) { return "\"" + std::string(s) + "\""; };
  const std::string about = quoted(d.subject.view()), word = quoted(d.word.view());
  switch (d.what) {
    case fault::unknown_axis:
    case fault::axis_used_twice: return word + " in " + about;
    case fault::operand_count:
    case fault::rank_mismatch: return about + ": " + number(d.first) + " expected, " + number(d.second) + " given";
    case fault::not_a_scalar: return about + ": " + number(d.second) + " dims";
    case fault::unknown_letter:
    case fault::foreign_letter: return word + " of " + about;
    case fault::malformed_equation: return about + ", column " + number(d.first);
    case fault::index_in_no_operand:
    case fault::index_repeated: return word + " in " + about + ", column " + number(d.first);
    case fault::dims_differ: {
      const std::string index = d.word.empty() ? "" : ", index " + word;
      return about + ", operand " + number(d.first) + ", dim " + number(d.second) + index;
    }
    case fault::index_not_kept: return word + " in " + about + ", dim " + number(d.first);
    case fault::bad_range: return about + ": " + number(d.first) + (d.second < 0 ? "" : ", " + number(d.second));
    case fault::not_annotated:
    case fault::dims_do_not_broadcast:
    case fault::ambiguous_dims:
    case fault::wrong_type: return about + ", operand " + number(d.first);
    case fault::implicit_gather:
    case fault::implicit_move: return about + ", operand " + number(d.first) + ", over " + word;
    case fault::no_device_dim:
    case fault::device_dim_twice:
    case fault::device_dim_left:
    case fault::axis_not_first:
    case fault::implicit_sum: return about + ", over " + word;
    case fault::does_not_divide:
      return "dim " + word + " of " + about + ": " + number(d.first) + " cut into " + number(d.second);
    case fault::unknown_extent: return word;
    case fault::too_little_memory: return number(d.first) + " MiB needed, " + number(d.second) + " MiB allowed";
    default: return d.subject.empty() ? "" : about;
  }
}

}  // namespace detail

/// A fault as text: the compiler's sentence, then the details: `a partition spec uses one mesh axis twice ("x" in "wi")`. Columns, operands
/// and dims count from 0. Empty if nothing is wrong.
/// @see detail::check_program
inline std::string describe(const diagnostic& d) {
  std::string words = detail::words(d);
  if (d.line > 0) words.append(words.empty() ? "" : ", ").append("line ").append(std::to_string(d.line));
  return std::string(detail::sentence(d.what)) + (words.empty() ? "" : " (" + words + ")");
}

}}  // namespace gshard::v0

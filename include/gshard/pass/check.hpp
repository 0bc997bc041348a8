// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Compile-time error messages: one static_assert sentence for every fault that tracing and planning report.

#include <gshard/base/reason.hpp>
#include <gshard/ir/fault.hpp>
#include <gshard/ir/mesh.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace gshard { inline namespace v0 { namespace detail {

template <class Mesh, std::size_t... A>
constexpr auto axes_of(std::index_sequence<A...>) {
  return mesh_axes<word<Mesh::shape.names[A].length>(Mesh::shape.names[A].view())...>{};
}

/// Fails with the sentence of the fault of `D`. The types beside the sentence name the subject and the wrong word.
template <fault What, diagnostic D, class Mesh>
constexpr bool check_program() {
  constexpr gshard::word<D.subject.length> subject(D.subject.view());
  constexpr gshard::word<D.word.length> detail_word(D.word.view());
  using where = in_tensor<subject>;
  using operation = in_operation<subject>;
  using formula = in_equation<subject>;
  using letter = index_letter<detail_word>;
  using line = std::conditional_t<(D.line > 0), at_line<D.line>, of_no_line>;
  using axes = decltype(axes_of<Mesh>(std::make_index_sequence<std::size_t(Mesh::shape.count)>{}));
  static_assert(holds<What != fault::unknown_axis, unknown_axis<detail_word>, axes, where>,
                "gshard: a partition spec names an axis that the mesh does not have");
  static_assert(holds<What != fault::axis_used_twice, repeated_axis<detail_word>, where>,
                "gshard: a partition spec uses one mesh axis twice");
  static_assert(holds<What != fault::rank_mismatch, operation, expected_rank<D.first>, actual_rank<D.second>, line>,
                "gshard: a tensor has another number of dims than its partition spec, equation or operation expects");
  static_assert(holds<What != fault::not_a_scalar, operation, actual_rank<D.second>, line>,
                "gshard: a loss, a rate, a condition or a count is a scalar: take the sum or the mean first");
  static_assert(holds<What != fault::unknown_letter, where, letter>,
                "gshard: dims are declared by at most 8 characters, all of them letters");
  static_assert(holds<What != fault::foreign_letter, where, letter>,
                "gshard: the initial values of a parameter depend on a dim that it does not have");
  static_assert(holds<What != fault::too_many_dims, where>, "gshard: a program has at most 256 different dims");
  static_assert(holds<What != fault::malformed_equation, formula, at_column<D.first>, line>,
                "gshard: malformed einsum equation: expected index letters, one ',' between operands and one '->'");
  static_assert(holds<What != fault::index_in_no_operand, formula, letter, at_column<D.first>, line>,
                "gshard: an output index of the einsum equation is in no operand");
  static_assert(holds<What != fault::index_repeated, formula, letter, at_column<D.first>, line>,
                "gshard: an output index of the einsum equation occurs twice");
  static_assert(holds<What != fault::operand_count, formula, operands_in_equation<D.first>, operands_given<D.second>, line>,
                "gshard: the einsum equation has another number of operands than the call");
  static_assert(holds<What != fault::dims_differ, operation, operand_number<D.first>, dim_number<D.second>, letter, line>,
                "gshard: one index or operation has two different dims");
  static_assert(holds<What != fault::dims_do_not_broadcast, operation, operand_number<D.first>, line>,
                "gshard: the dims of an operand are not among the dims of the largest operand, in their order");
  static_assert(holds<What != fault::ambiguous_dims, operation, operand_number<D.first>, line>,
                "gshard: the dims of an operand match those of the largest operand in several ways: state the intended one by broadcast");
  static_assert(holds<What != fault::index_not_kept, formula, letter, dim_number<D.first>, line>,
                "gshard: broadcast keeps every index of its first operand: each occurs there once, and in the output");
  static_assert(holds<What != fault::bad_range, operation, range_given<D.first, D.second>, line>,
                "gshard: a range, count, window or priority has no meaning: it runs backwards, goes beyond its limits, or is given twice");
  static_assert(holds<What != fault::no_taps, operation, line>,
                "gshard: a convolution needs a tap (lower-case letter of its second operand) for every dim that a window moves along");
  static_assert(holds<What != fault::wrong_type, operation, operand_number<D.first>, line>,
                "gshard: an operand has another element type than the operation takes");
  static_assert(holds<What != fault::does_not_divide, where, static_extent<detail_word, D.first>, cut_into<D.second>>,
                "gshard: a static extent is not a multiple of the static extents of the mesh axes that shard it");
  static_assert(holds<What != fault::incomplete_output, where>,
                "gshard: a partial sum is used where a complete tensor is declared");
  static_assert(holds<What != fault::sum_not_pending, operation, line>,
                "gshard: a sharding asks for a partial sum that the tensor does not have");
  static_assert(holds<What != fault::not_differentiable, operation, line>, "gshard: no gradient is known for an operation");
  static_assert(holds<What != fault::gradient_of_loop, operation, line>,
                "gshard: a loop with a run-time trip count has no gradient: use repeat<n>, or stop_gradient");
  static_assert(holds<What != fault::used_outside_loop, where>,
                "gshard: a tensor of a loop's body is used outside of the loop: let the loop carry it");
  static_assert(holds<What != fault::update_in_loop, operation, line>,
                "gshard: parameters are not updated in loops with a run-time trip count");
  static_assert(
      holds<What != fault::duplicate_name, where>,
      "gshard: two parameters with different dims, initial values or partition specs have one name");
  static_assert(holds<What != fault::name_too_long, where>, "gshard: a parameter's full name is longer than 63 characters");
  static_assert(holds<What != fault::constant_loss, operation, line>,
                "gshard: a loss depends on no parameter: minimize takes the loss first, then the rate");
  static_assert(holds<What != fault::no_terms, operation, line>, "gshard: no layer has given an auxiliary loss");
  static_assert(holds<What != fault::read_after_update, where>, "gshard: a parameter is read after it was updated in place");
  static_assert(holds<What != fault::not_annotated, operation, operand_number<D.first>, line>,
                "gshard: an operand of a local function must be annotated in all its dims");
  static_assert(holds<What != fault::no_device_dim, operation, over_axis<detail_word>, line>,
                "gshard: a tensor lacks the dim that counts the devices along an axis: verbs on shards, and specs with that axis, need it");
  static_assert(holds<What != fault::device_dim_twice, operation, over_axis<detail_word>, line>,
                "gshard: a tensor has the dim that counts the devices along an axis twice: verbs on shards cannot tell which is meant");
  static_assert(holds<What != fault::device_dim_left, operation, over_axis<detail_word>, line>,
                "gshard: the result of a per_shard region differs between the devices along its axis, which its spec does not name");
  static_assert(holds<What != fault::axis_not_first, operation, over_axis<detail_word>, line>,
                "gshard: the axis of a per_shard region shards a dim after another axis: enter the regions of a dim's axes in their order");
  static_assert(holds<What != fault::no_such_assignment, operation, axes, line>,
                "gshard: no sharding over static mesh axes makes the pieces of an assignment, or its devices are not those of the mesh");
  static_assert(holds<What != fault::no_such_order, where>,
                "gshard: a partition spec orders devices that are not those of the mesh, each once, or the mesh's extents are not static");
  static_assert(holds<What != fault::implicit_gather, operation, operand_number<D.first>, over_axis<detail_word>, line>,
                "gshard: an operand would be gathered implicitly (visible): annotate it, or say may_move(operand)");
  static_assert(holds<What != fault::implicit_move, operation, operand_number<D.first>, over_axis<detail_word>, line>,
                "gshard: an operand would be resharded implicitly (strict): annotate it, or say may_move(operand)");
  static_assert(holds<What != fault::implicit_sum, operation, over_axis<detail_word>, line>,
                "gshard: a sum over a sharded index would be completed implicitly (strict): annotate the result with its sharding");
  static_assert(holds<What != fault::unknown_extent, extent_of<detail_word>>,
                "gshard: to choose shardings, the extent of every letter and of every mesh axis must be known");
  static_assert(holds<What != fault::too_little_memory, needed_mebibytes<D.first>, allowed_mebibytes<D.second>>,
                "gshard: no sharding was found that keeps every device within its memory limit");
  return true;
}

}}}  // namespace gshard::v0::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Types that compilers print next to the message of a failed static_assert, to name the wrong axis, operand or dim.
//
// A check reads
//   static_assert(holds<condition, unknown_axis<"exprt">, mesh_axes<"data", "expert">>, "message");

#include <gshard/core/base/fixed_string.hpp>

namespace gshard { inline namespace v0 {

template <bool Condition, class... Reasons>
inline constexpr bool holds = Condition;

template <fixed_string Text>
struct in_equation {};
template <int Column>
struct at_column {};
template <fixed_string Letter>
struct index_letter {};
template <int Count>
struct operands_in_equation {};
template <int Count>
struct operands_given {};
template <int Count>
struct inputs_given {};
template <int Count>
struct tensors_passed {};
template <fixed_string Axis>
struct unknown_axis {};
template <fixed_string Axis>
struct repeated_axis {};
template <fixed_string... Axes>
struct mesh_axes {};
template <fixed_string Name>
struct in_tensor {};
template <fixed_string Name>
struct in_operation {};
template <fixed_string Both>
struct conflicting_options {};
template <int Rank>
struct expected_rank {};
template <int Rank>
struct actual_rank {};
template <int Operand>
struct operand_number {};
struct the_operand {};  ///< the operand of an operation with one operand
/// An operand that is a parameter or an option.
template <fixed_string Name>
struct operand_name {};
/// A dim of the operand, and its letter if it has one.
template <int Dim, fixed_string... Letter>
struct dim_number {};
template <fixed_string Type>
struct actual_element_type {};
template <fixed_string Types>
struct expected_element_types {};
template <class T>
struct expected_type {};
template <class T>
struct actual_type {};
template <fixed_string Letter, long long Extent>
struct static_extent {};
template <int Count>
struct divided_by {};
template <long long Extent>
struct product_of_extents {};
template <fixed_string LetterOrAxis>
struct extent_of {};
template <int MiB>
struct needed_mebibytes {};
template <int MiB>
struct allowed_mebibytes {};
/// Options or arguments that are out of range, and their values in this order if they are integers.
template <fixed_string Names, int... Values>
struct range_given {};
template <int Line, fixed_string... Scope>
struct at_line {};
struct of_no_line {};
template <fixed_string Axis>
struct over_axis {};

}}  // namespace gshard::v0

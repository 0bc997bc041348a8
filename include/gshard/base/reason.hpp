// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Types that compilers print beside the sentence of a failed static_assert, to name the wrong axis, operand or dim.
//
// A check reads
//   static_assert(holds<condition, unknown_axis<"exprt">, mesh_axes<"data", "expert">>, "sentence");

#include <gshard/base/fixed_string.hpp>

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
template <int Dim>
struct dim_number {};
template <class T>
struct expected_type {};
template <class T>
struct actual_type {};
template <fixed_string Letter, long long Extent>
struct static_extent {};
template <int Count>
struct divided_by {};
template <fixed_string LetterOrAxis>
struct extent_of {};
template <int MiB>
struct needed_mebibytes {};
template <int MiB>
struct allowed_mebibytes {};
template <int First, int Second>
struct range_given {};
template <int Line, fixed_string... Scope>
struct at_line {};
struct of_no_line {};
template <fixed_string Axis>
struct over_axis {};

}}  // namespace gshard::v0

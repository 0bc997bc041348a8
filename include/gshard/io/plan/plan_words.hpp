// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The words of plan files for enumerations, operations and the own attributes of operations.

#include <gshard/all_operations.hpp>
#include <gshard/core/ir/attributes.hpp>
#include <gshard/core/ir/dim.hpp>
#include <gshard/core/ir/dtype.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/ir/reduction.hpp>

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

// By number of the enumerator.
constexpr std::array<std::string_view, 4> words_of(reduction) { return {"sum", "max", "min", "prod"}; }
constexpr std::array<std::string_view, 6> words_of(reshape_kind) { return {"unchanged", "merge", "split", "insert", "remove", "rename"}; }
constexpr std::array<std::string_view, 3> words_of(not_finite) { return {"stop", "skip", "ignore"}; }
constexpr std::array<std::string_view, 4> words_of(initializer::kind) { return {"zeros", "constant", "normal", "row"}; }
constexpr std::array<std::string_view, 7> words_of(dim::kind) {
  return {"letter", "fixed", "product", "ratio", "linear", "rounded", "blocks"};
}
inline std::vector<std::string_view> words_of(dtype) {
  std::vector<std::string_view> all;
  for (const dtype_traits& t : dtype_table) all.push_back(t.name);
  return all;
}
inline std::vector<std::string_view> words_of(op_ref) {
  std::vector<std::string_view> all;
  for (const op_ref o : all_operations) all.push_back(o->name);
  return all;
}
template <class T>
std::string_view word_of(T x) {
  return words_of(x)[std::size_t(x)];
}

/// The sets of own attributes of all operations.
inline const attribute_names* const own_attributes[]{
    &attribute_names_of<adam_attributes>,          &attribute_names_of<attention_attributes>, &attribute_names_of<cast_attributes>,
    &attribute_names_of<cross_entropy_attributes>, &attribute_names_of<cumsum_attributes>,    &attribute_names_of<dropout_attributes>,
    &attribute_names_of<gather_attributes>,        &attribute_names_of<gating_attributes>,    &attribute_names_of<layer_norm_attributes>,
    &attribute_names_of<random_attributes>,        &attribute_names_of<scale_attributes>,     &attribute_names_of<sort_attributes>,
};

}}}  // namespace gshard::v0::detail

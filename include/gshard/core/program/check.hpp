// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Compile-time error messages: one static_assert for every fault that tracing and planning report.

#include <gshard/core/base/reason.hpp>
#include <gshard/core/ir/fault.hpp>
#include <gshard/core/ir/mesh.hpp>

#include <cstddef>
#include <utility>

namespace gshard { inline namespace v0 { namespace detail {

template <class Mesh, std::size_t... A>
constexpr auto axes_of(std::index_sequence<A...>) {
  return mesh_axes<word<Mesh::shape.names[A].length>(Mesh::shape.names[A].view())...>{};
}

/// The line of a fault, and the named_scope around it.
template <diagnostic D>
constexpr auto line_of() {
  if constexpr (D.line <= 0) return of_no_line();
  else if constexpr (D.scope.empty()) return at_line<D.line>();
  else return at_line<D.line, word<D.scope.length>(D.scope.view())>();
}

/// The operand of a fault: its number, or its name if it has none.
template <diagnostic D, fixed_string Name>
constexpr auto operand_of() {
  if constexpr (D.first == diagnostic::no_number) return operand_name<Name>();
  else return operand_number<D.first>();
}

/// The operand of a fault of ranks. If there are several operands, the word is its number.
template <diagnostic D>
constexpr auto ranked_operand_of() {
  constexpr int number = [] {
    int n = 0;
    for (const char digit : D.word.view()) n = 10 * n + (digit - '0');
    return n;
  }();
  if constexpr (D.word.empty()) return the_operand();
  else return operand_number<number>();
}

/// The dim of a fault. The word is its letter, unless it names the operand.
template <diagnostic D, fixed_string Word>
constexpr auto dim_of() {
  if constexpr (D.first == diagnostic::no_number || D.word.empty()) return dim_number<D.second>();
  else return dim_number<D.second, Word>();
}

/// The options that are out of range, and as many of their values as are known.
template <diagnostic D, fixed_string Names>
constexpr auto given_range_of() {
  if constexpr (D.first == diagnostic::no_number) return range_given<Names>();
  else if constexpr (D.second == diagnostic::no_number) return range_given<Names, D.first>();
  else return range_given<Names, D.first, D.second>();
}

/// The element types of a set, as a text.
template <element_set Set>
constexpr auto text_of() {
  constexpr auto all = element_names(Set);
  return word<all.length>(all.view());
}

/// Fails with the message of the fault of `D`. The types next to the message name the subject and the wrong word.
template <fault What, diagnostic D, class Mesh>
constexpr bool check_program() {
  constexpr gshard::word<D.subject.length> subject(D.subject.view());
  constexpr gshard::word<D.word.length> name(D.word.view());
  using where = in_tensor<subject>;
  using operation = in_operation<subject>;
  using operand = decltype(operand_of<D, name>());
  using ranked = decltype(ranked_operand_of<What == fault::rank_mismatch ? D : diagnostic{}>());
  using range = decltype(given_range_of<D, name>());
  using given = actual_element_type<text_of<only(D.given)>()>;
  using taken = expected_element_types<text_of<D.taken>()>;
  using formula = in_equation<subject>;
  using letter = index_letter<name>;
  using dim = decltype(dim_of<D, name>());
  using line = decltype(line_of<D>());
  using axes = decltype(axes_of<Mesh>(std::make_index_sequence<std::size_t(Mesh::shape.count)>{}));
#define GSHARD_FAULT(kind, sentence, ...) static_assert(holds<What != fault::kind, __VA_ARGS__>, "gshard: " sentence);
#include <gshard/core/ir/fault.def>
  return true;
}

}}}  // namespace gshard::v0::detail

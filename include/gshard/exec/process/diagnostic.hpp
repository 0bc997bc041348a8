// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Text of diagnostics: the sentences that the compiler prints for a wrong program.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/ir/fault.hpp>

#include <string>
#include <string_view>

namespace gshard { inline namespace v0 {

namespace detail {

/// The sentence of a fault, as the compiler prints it.
constexpr std::string_view sentence(fault what) {
  switch (what) {
    case fault::nothing: return "";
    case fault::refused_call: return "a verb is called with other arguments than it takes";
#define GSHARD_FAULT(kind, sentence, ...) \
  case fault::kind: return sentence;
#include <gshard/core/ir/fault.def>
  }
  return "";
}

/// The details of a diagnostic, which the compiler prints as types.
std::string words(const diagnostic& d);

}  // namespace detail

/// A fault as text: the compiler's sentence, then the details: `a partition spec uses one mesh axis twice ("x" in "wi")`. Columns, operands
/// and dims count from 0. Empty if nothing is wrong.
/// @see fault
std::string describe(const diagnostic& d);

#if GSHARD_HAS_BODIES

namespace detail {

GSHARD_INLINE std::string words(const diagnostic& d) {
  const auto number = [](int n) { return std::to_string(n); };
  const auto quoted = [](std::string_view s) { return "\"" + std::string(s) + "\""; };
  const std::string about = quoted(d.subject.view()), word = quoted(d.word.view());
  switch (d.what) {
    case fault::unknown_axis:
    case fault::axis_used_twice: return word + " in " + about;
    case fault::rank_mismatch:
      return about + (d.word.empty() ? "" : ", operand " + std::string(d.word.view())) + ": " + number(d.first) + " expected, " +
             number(d.second) + " given";
    case fault::operand_count: return about + ": " + number(d.first) + " expected, " + number(d.second) + " given";
    case fault::no_such_dim: return about + ": dim " + number(d.first) + ", of " + number(d.second) + " dims";
    case fault::not_a_scalar: return about + ": " + number(d.second) + " dims";
    case fault::letters_of_one_dim:
    case fault::unknown_count:
    case fault::unknown_letter:
    case fault::foreign_letter: return word + " of " + about;
    case fault::equation_too_large:
    case fault::ellipsis_of_einsum:
    case fault::malformed_equation: return about + ", column " + number(d.first);
    case fault::index_in_no_operand:
    case fault::index_repeated: return word + " in " + about + ", column " + number(d.first);
    case fault::dims_differ: {
      const std::string dim = ", dim " + number(d.second);
      if (d.first == diagnostic::no_number) return about + ", " + std::string(d.word.view()) + dim;
      return about + ", operand " + number(d.first) + dim + (d.word.empty() ? "" : ", index " + word);
    }
    case fault::index_not_kept: return word + " in " + about + ", dim " + number(d.first);
    case fault::bad_range: {
      std::string range(d.word.view());
      if (d.first != diagnostic::no_number) range += " = " + number(d.first);
      if (d.second != diagnostic::no_number) range += ", " + number(d.second);
      return range + " in " + about;
    }
    case fault::not_annotated:
    case fault::dims_do_not_broadcast:
    case fault::ambiguous_dims: return about + ", operand " + number(d.first);
    case fault::wrong_type: {
      const std::string operand = d.first == diagnostic::no_number ? word : "operand " + number(d.first);
      const std::string taken(element_names(d.taken).view()), given(name(d.given));
      return about + ", " + operand + ": " + taken + " expected, " + given + " given";
    }
    case fault::implicit_gather:
    case fault::implicit_move: return about + ", operand " + number(d.first) + ", over " + word;
    case fault::no_device_dim:
    case fault::device_dim_twice:
    case fault::device_dim_left:
    case fault::axis_not_first:
    case fault::not_a_permutation:
    case fault::implicit_sum: return about + ", over " + word;
    case fault::does_not_divide:
      return "dim " + word + " of " + about + ": " + number(d.first) + " divided by " + number(d.second);
    case fault::not_the_product: return about + ", dim " + word + ": " + number(d.first) + " and " + number(d.second);
    case fault::uneven_chunks: return about + ", dim " + word + ": " + number(d.first) + " divided by " + number(d.second);
    case fault::options_conflict: return std::string(d.word.view()) + " in " + about;
    case fault::odd_extent: return about + ", dim " + word + ": " + number(d.first);
    case fault::unknown_extent: return word;
    case fault::too_little_memory: return number(d.first) + " MiB needed, " + number(d.second) + " MiB allowed";
    default: return d.subject.empty() ? "" : about;
  }
}

}  // namespace detail

GSHARD_INLINE std::string describe(const diagnostic& d) {
  std::string words = detail::words(d);
  if (d.line > 0) words.append(words.empty() ? "" : ", ").append("line ").append(std::to_string(d.line));
  if (!d.scope.empty()) words.append(" in \"").append(d.scope.view()).append("\"");
  return std::string(detail::sentence(d.what)) + (words.empty() ? "" : " (" + words + ")");
}

#endif

}}  // namespace gshard::v0

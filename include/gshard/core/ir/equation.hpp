// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Einsum equations in numpy's notation, and their parser.

#include <gshard/core/base/packed_list.hpp>
#include <gshard/core/ir/fault.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 {

/// An einsum equation in numpy's notation, `"GSM,ME->GSE"`. Each index letter is a factor, numbered in order of appearance. Each operand,
/// and the output, is the list of the factors of its dims. Letters are local to the equation.
struct equation {
  static constexpr int most_operands = 16;
  static constexpr int most_factors = short_list::largest;

  std::array<short_list, most_operands> operands{};
  short_list output;
  int count = 0;  // operands
  std::array<char, most_factors> letters{};
  int factors = 0;
  /// For each operand, and for the output: the position of "..." among the letters, counted from 1; 0: none.
  std::array<std::uint8_t, most_operands> ellipses{};
  std::uint8_t output_ellipsis = 0;
  bool has_ellipsis = false;

  constexpr int factor(char letter) const {
    for (int f = 0; f < factors; ++f)
      if (letters[std::size_t(f)] == letter) return f;
    return -1;
  }
  constexpr const short_list& operand(int i) const { return operands[std::size_t(i)]; }
};

/// The forms of equations that a verb takes: with "->" and letters alone; or all of numpy's einsum, also without an output, and with "...".
enum class equation_form : std::uint8_t { letters, numpy };

constexpr bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

namespace detail {
/// numpy's output of an equation that has none: "..." if an operand has it, then the letters that occur once, in alphabetical order.
constexpr void give_output(equation& e) {
  std::uint32_t once = 0, more = 0;
  for (int i = 0; i < e.count; ++i)
    for (int d = 0; d < e.operand(i).size(); ++d) {
      const std::uint32_t bit = 1u << e.operand(i)[d];
      more |= once & bit;
      once |= bit;
    }
  e.output_ellipsis = e.has_ellipsis;
  for (char c = 'A'; c <= 'z'; ++c)
    if (const int f = is_letter(c) ? e.factor(c) : -1; f >= 0 && !((more >> f) & 1u) && !e.output.full()) e.output.push_back(f);
}
}  // namespace detail

/// Parses an equation; spaces are ignored. Reports `malformed_equation`, `ellipsis_of_einsum` and `equation_too_large` with the column, and
/// `index_in_no_operand` or `index_repeated` with the letter.
constexpr equation parse_equation(std::string_view text, diagnostic& problem, equation_form form = equation_form::letters) {
  equation e;
  const auto fails = [&](fault f, std::size_t column) {
    problem.report(f, text, {}, int(column));
    return e;
  };
  std::size_t i = 0;
  short_list dims;
  std::uint8_t ellipsis = 0;
  bool in_output = false;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if (is_letter(c)) {
      int f = e.factor(c);
      if (f < 0) {
        if (in_output) {
          problem.report(fault::index_in_no_operand, text, text.substr(i, 1), int(i));
          return e;
        }
        if (e.factors == equation::most_factors) return fails(fault::equation_too_large, i);
        f = e.factors++;
        e.letters[std::size_t(f)] = c;
      }
      if (dims.full()) return fails(fault::equation_too_large, i);
      if (in_output && dims.contains(f)) {
        problem.report(fault::index_repeated, text, text.substr(i, 1), int(i));
        return e;
      }
      dims.push_back(f);
    } else if (!in_output && (c == ',' || (c == '-' && i + 1 < text.size() && text[i + 1] == '>'))) {
      if (e.count == equation::most_operands) return fails(fault::equation_too_large, i);
      e.ellipses[std::size_t(e.count)] = ellipsis;
      e.operands[std::size_t(e.count++)] = dims;
      dims = {};
      ellipsis = 0;
      if (c == '-') {
        in_output = true;
        ++i;
      }
    } else if (form == equation_form::numpy && ellipsis == 0 && text.substr(i, 3) == "..." && (!in_output || e.has_ellipsis)) {
      ellipsis = std::uint8_t(dims.size() + 1);
      e.has_ellipsis = true;
      i += 2;
    } else {
      const bool is_ellipsis = form == equation_form::letters && text.substr(i, 3) == "...";
      return fails(is_ellipsis ? fault::ellipsis_of_einsum : fault::malformed_equation, i);
    }
  }
  if (in_output) {
    e.output = dims;
    e.output_ellipsis = ellipsis;
    return e;
  }
  if (form == equation_form::letters || (e.count == 0 && dims.empty() && ellipsis == 0)) return fails(fault::malformed_equation, i);
  if (e.count == equation::most_operands) return fails(fault::equation_too_large, i);
  e.ellipses[std::size_t(e.count)] = ellipsis;
  e.operands[std::size_t(e.count++)] = dims;
  detail::give_output(e);
  return e;
}

/// The equation for operands of these ranks. The dims of an operand without letters replace "...", matched from the last one on. Their
/// factors follow the factors of letters. Reports `equation_too_large`, and `ellipsis_not_kept`.
constexpr equation without_ellipses(const equation& e, const int* ranks, std::string_view text, diagnostic& problem) {
  equation all = e;
  int most = 0;
  for (int i = 0; i < e.count; ++i)
    if (const int left = ranks[i] - e.operand(i).size(); e.ellipses[std::size_t(i)] != 0 && left > most) most = left;
  if (most > 0 && e.output_ellipsis == 0) problem.report(fault::ellipsis_not_kept, text);
  if (e.factors + most > equation::most_factors) problem.report(fault::equation_too_large, text, {}, int(text.size()));
  const auto expand = [&](short_list& dims, int position, int count) {
    for (int k = 0; k < count && position > 0 && !problem; ++k) {
      if (dims.full()) problem.report(fault::equation_too_large, text, {}, int(text.size()));
      else dims.insert(position - 1 + k, e.factors + most - count + k);
    }
  };
  for (int i = 0; i < e.count; ++i) expand(all.operands[std::size_t(i)], e.ellipses[std::size_t(i)], ranks[i] - e.operand(i).size());
  expand(all.output, e.output_ellipsis, most);
  for (int k = 0; k < most && e.factors + k < equation::most_factors; ++k) all.letters[std::size_t(e.factors + k)] = '.';
  all.factors = e.factors + most;
  all.has_ellipsis = false;
  return all;
}

}}  // namespace gshard::v0

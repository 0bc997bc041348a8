// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Einsum equations in numpy's notation, and their parser.

#include <gshard/base/packed_list.hpp>
#include <gshard/ir/fault.hpp>

#include <array>
#include <cstddef>
#include <string_view>

namespace gshard { inline namespace v0 {

/// An einsum equation in numpy's notation, `"GSM,ME->GSE"`. Each index letter is a factor, numbered in order of appearance. Each operand,
/// and the output, is the list of the factors of its dims. Letters are local to the equation.
struct equation {
  static constexpr int most_operands = 6;
  static constexpr int most_factors = short_list::largest;

  std::array<short_list, most_operands> operands{};
  short_list output;
  int count = 0;  // operands
  std::array<char, most_factors> letters{};
  int factors = 0;

  constexpr int factor(char letter) const {
    for (int f = 0; f < factors; ++f)
      if (letters[std::size_t(f)] == letter) return f;
    return -1;
  }
  constexpr const short_list& operand(int i) const { return operands[std::size_t(i)]; }
};

constexpr bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

/// Parses an equation; spaces are ignored. Reports `malformed_equation` with the column, and `index_in_no_operand` or `index_repeated` with
/// the letter.
constexpr equation parse_equation(std::string_view text, diagnostic& problem) {
  equation e;
  const auto malformed = [&](std::size_t column) {
    problem.report(fault::malformed_equation, text, {}, int(column));
    return e;
  };
  std::size_t i = 0;
  short_list dims;
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
        if (e.factors == equation::most_factors) return malformed(i);
        f = e.factors++;
        e.letters[std::size_t(f)] = c;
      }
      if (dims.full()) return malformed(i);
      if (in_output && dims.contains(f)) {
        problem.report(fault::index_repeated, text, text.substr(i, 1), int(i));
        return e;
      }
      dims.push_back(f);
    } else if (!in_output && (c == ',' || (c == '-' && i + 1 < text.size() && text[i + 1] == '>'))) {
      if (e.count == equation::most_operands) return malformed(i);
      e.operands[std::size_t(e.count++)] = dims;
      dims = {};
      if (c == '-') {
        in_output = true;
        ++i;
      }
    } else {
      return malformed(i);
    }
  }
  if (!in_output) return malformed(i);
  e.output = dims;
  return e;
}

}}  // namespace gshard::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Matches the letters of an equation with the dims of its operands.

#include <gshard/core/base/list_view.hpp>
#include <gshard/core/ir/equation.hpp>
#include <gshard/core/trace/builder.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 { namespace detail {

constexpr std::string_view letter_of(const equation& e, int factor) { return {&e.letters[std::size_t(factor)], 1}; }

/// The program's dim of each letter of an equation, by factor. Reports operands of wrong rank, and letters that name two dims.
constexpr std::array<int, equation::most_factors> dims_of_letters(builder& b, list_view<symbol> operands, const equation& e,
                                                                  std::string_view about) {
  std::array<int, equation::most_factors> dim_of{};
  std::uint32_t known = 0;  // letters that have a dim, a bit each
  for (std::size_t i = 0; i < operands.size() && !b.failed(); ++i) {
    const dim_list dims = operands[i].get().dims;
    const short_list& letters = e.operands[i];
    if (dims.size() != letters.size()) b.fail_rank(about, int(i), letters.size(), dims.size());
    for (int d = 0; d < dims.size() && !b.failed(); ++d) {
      const int f = letters[d];
      const bool is_other = ((known >> f) & 1u) && dim_of[std::size_t(f)] != dims[d];
      if (is_other && !b.same_extent(dim_of[std::size_t(f)], dims[d])) b.fail(fault::dims_differ, about, letter_of(e, f), int(i), d);
      known |= 1u << f;
      dim_of[std::size_t(f)] = is_other ? b.better_named(dim_of[std::size_t(f)], dims[d]) : dims[d];
    }
  }
  return dim_of;
}

/// The dims of the output of an equation.
constexpr dim_list output_dims(const equation& e, const std::array<int, equation::most_factors>& dim_of) {
  dim_list dims;
  for (int d = 0; d < e.output.size(); ++d) dims.push_back(dim_of[std::size_t(e.output[d])]);
  return dims;
}

}}}  // namespace gshard::v0::detail

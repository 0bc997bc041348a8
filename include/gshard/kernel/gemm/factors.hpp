// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Dims of einsum operands by factor, and their loops and strides.

#include <gshard/comm/error.hpp>
#include <gshard/kernel/loops.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace gshard { inline namespace v0 { namespace kernel {

/// The dims of a row-major operand of an einsum-like operation. Equal factor numbers (0 to 15) stand for the
/// same index letter; a factor may occur twice in one operand, which then is read along the diagonal.
struct operand_dims {
  int rank = 0;
  std::array<int, max_rank> factor{};
  index_array extent{};
  /// Strides in elements of a block of a larger tensor; unless given, the operand is contiguous.
  std::optional<index_array> stride{};
};

namespace detail {

inline std::string text(const operand_dims& operand) {
  std::string s = "[";
  for (std::size_t d = 0; d < std::size_t(operand.rank); ++d) {
    if (d > 0) s += ',';
    s += char('a' + operand.factor[d]);
    s += ':';
    s += std::to_string(operand.extent[d]);
  }
  s += ']';
  return s;
}

template <std::size_t N>
std::string text(const std::array<operand_dims, N>& operands) {
  std::string s;
  for (std::size_t o = 0; o < N; ++o) {
    if (o > 0) s += o + 1 == N ? " -> " : ", ";
    s += text(operands[o]);
  }
  return s;
}

/// One loop per factor, in the order of their numbers. The last operand is the result, whose factors must be
/// different and occur in some other operand. Throws gshard::error naming `operation` and the operands.
template <std::size_t N>
loop_nest<N> loops_of(const char* operation, const std::array<operand_dims, N>& operands) {
  constexpr std::size_t factors = loop_nest<N>::most;
  const auto fail = [&](const std::string& why) {
    throw error(std::string(operation) + ' ' + text(operands) + ": " + why);
  };
  std::array<loop<N>, factors> loops;
  std::array<bool, factors> used{};
  for (std::size_t o = 0; o < N; ++o) {
    const bool result = o + 1 == N;
    const index_array stride = operands[o].stride.value_or(row_major_strides(operands[o].rank, operands[o].extent));
    std::array<bool, factors> here{};
    for (std::size_t d = 0; d < std::size_t(operands[o].rank); ++d) {
      const auto f = std::size_t(operands[o].factor[d]);
      if (f >= factors) fail("a factor is not in 0..15");
      const std::string name(1, char('a' + int(f)));
      if (result && !used[f]) fail("'" + name + "' of the result is in no operand");
      if (result && here[f]) fail("'" + name + "' occurs twice in the result");
      if (used[f] && loops[f].extent != operands[o].extent[d]) fail("'" + name + "' has two extents");
      used[f] = here[f] = true;
      loops[f].extent = operands[o].extent[d];
      loops[f].stride[o] += stride[d];
    }
  }
  loop_nest<N> nest;
  for (std::size_t f = 0; f < factors; ++f)
    if (used[f]) nest.push(loops[f]);
  return nest;
}

}  // namespace detail

}}}  // namespace gshard::v0::kernel

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Describes einsum operands by factors (index letters), and turns them into a loop nest.

#include <gshard/exec/kernel/loops.hpp>
#include <gshard/exec/process/error.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace gshard { inline namespace v0 { namespace kernel {

/// The dims of a row-major operand of an einsum-like operation. Equal factor numbers (0 to 15) are the same index letter. If a factor
/// occurs twice in one operand, the operand is read along its diagonal.
struct operand_dims {
  int rank = 0;
  std::array<int, max_rank> factor{};
  index_array extent{};
  /// Strides in elements, for a block of a larger tensor. By default, the operand is contiguous.
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

/// One loop per factor, in the order of factor numbers. The last operand is the result. Its factors must be different, and must occur in
/// another operand. Throws gshard::error with `operation` and the operands in its text.
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
/// The index of a factor's loop in loops_of: the number of lower factors that the operands have.
template <std::size_t N>
std::size_t loop_of_factor(int factor, const std::array<operand_dims, N>& operands) {
  std::uint32_t lower = 0;
  for (const operand_dims& o : operands)
    for (std::size_t d = 0; d < std::size_t(o.rank); ++d)
      if (o.factor[d] < factor) lower |= 1u << o.factor[d];
  return std::size_t(std::popcount(lower));
}

}  // namespace detail

}}}  // namespace gshard::v0::kernel

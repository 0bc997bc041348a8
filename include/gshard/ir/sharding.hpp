// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/base/packed_list.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 {

/// How one tensor lies on a mesh. Dim d is cut over the mesh axes `axes[d]`, major to minor, each cut into ceil-sized blocks
/// of what the axes before it left; a mesh axis that occurs nowhere holds copies, or, if its bit is set in `partial`, addends
/// whose sum is the tensor. A dim whose bit is set in `open` may still be refined by propagation.
struct sharding {
  short_list axes[max_rank]{};  // not std::array: each of its subscripts is a call that the constexpr evaluator makes
  std::uint8_t rank = 0;
  std::uint8_t partial = 0;
  std::uint8_t open = 0;

  static constexpr sharding replicated(int rank) {
    sharding s;
    s.rank = std::uint8_t(rank);
    return s;
  }
  static constexpr sharding unconstrained(int rank) {
    sharding s = replicated(rank);
    s.open = std::uint8_t((1u << rank) - 1u);
    return s;
  }

  constexpr short_list& operator[](int d) { return axes[d]; }
  constexpr const short_list& operator[](int d) const { return axes[d]; }

  /// One bit per mesh axis that cuts some dim.
  constexpr std::uint32_t used() const {
    std::uint32_t m = 0;
    for (int d = 0; d < rank; ++d)
      if (axes[d].count > 0) m |= axes[d].mask();
    return m;
  }
  /// The dim that `axis` cuts, or -1.
  constexpr int dim_of(int axis) const {
    for (int d = 0; d < rank; ++d)
      if (axes[d].count > 0 && axes[d].contains(axis)) return d;
    return -1;
  }
  constexpr bool is_open(int d) const { return (open >> d) & 1u; }
  constexpr bool is_partial(int axis) const { return (partial >> axis) & 1u; }

  /// Same placement of data; whether dims are open does not matter.
  constexpr bool same_layout(const sharding& other) const {
    if (rank != other.rank || partial != other.partial) return false;
    for (int d = 0; d < rank; ++d)
      if (axes[d].count != other.axes[d].count || (axes[d].count && axes[d].bits != other.axes[d].bits)) return false;
    return true;
  }
  constexpr bool operator==(const sharding&) const = default;
};

}}  // namespace gshard::v0

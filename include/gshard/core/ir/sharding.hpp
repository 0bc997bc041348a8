// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The sharding of a tensor: which mesh axes shard each dim, and over which axes the tensor is a partial sum.

#include <gshard/core/base/interval.hpp>
#include <gshard/core/base/packed_list.hpp>
#include <gshard/core/ir/reduction.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 {

/// The sharding of one tensor on a mesh. The mesh axes `axes[d]` shard dim d, major to minor. Each axis splits the blocks of the axes
/// before it into ceil-sized blocks. A mesh axis that shards no dim holds replicas. If its bit is set in `partial`, it holds partial
/// results: the tensor is their sum (or maximum, ...: `pending`). The shards may be placed in another device `order` than the mesh's; then
/// nothing is partial. Propagation may refine a dim whose bit is set in `open`.
struct sharding {
  short_list axes[max_rank]{};  // not std::array, because each of its subscripts is a call in constexpr evaluation
  std::uint8_t rank = 0;
  std::uint8_t partial = 0;
  std::uint8_t open = 0;
  reduction pending = reduction::sum;
  std::uint8_t order = 0;  // of the devices: 0 is the mesh's own, others are rows of a table (core/ir/device_order.hpp)

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

  /// The sharding of the same tensor with its dims in the opposite order.
  constexpr sharding reversed() const {
    sharding s = *this;
    s.open = 0;
    for (int d = 0; d < rank; ++d) {
      s.axes[d] = axes[rank - 1 - d];
      if (is_open(rank - 1 - d)) s.open = std::uint8_t(s.open | 1u << d);
    }
    return s;
  }

  constexpr short_list& operator[](int d) { return axes[d]; }
  constexpr const short_list& operator[](int d) const { return axes[d]; }

  /// One bit for each mesh axis that shards some dim.
  constexpr std::uint32_t used() const {
    std::uint32_t m = 0;
    for (int d = 0; d < rank; ++d)
      if (axes[d].count > 0) m |= axes[d].mask();
    return m;
  }
  /// The dim that `axis` shards, or -1.
  constexpr int dim_of(int axis) const {
    for (int d = 0; d < rank; ++d)
      if (axes[d].count > 0 && axes[d].contains(axis)) return d;
    return -1;
  }
  constexpr bool is_open(int d) const { return (open >> d) & 1u; }
  constexpr bool is_partial(int axis) const { return (partial >> axis) & 1u; }

  /// Same placement of data. Open dims make no difference.
  constexpr bool same_layout(const sharding& other) const {
    if (rank != other.rank || partial != other.partial || order != other.order || (partial && pending != other.pending)) return false;
    for (int d = 0; d < rank; ++d)
      if (axes[d].count != other.axes[d].count || (axes[d].count && axes[d].bits != other.axes[d].bits)) return false;
    return true;
  }
  /// The sharding in which the axes of a mask hold replicas.
  constexpr sharding without(std::uint32_t mask) const {
    sharding s = *this;
    s.partial = std::uint8_t(s.partial & ~mask);
    for (int d = 0; d < rank; ++d)
      for (int i = s.axes[d].size(); i-- > 0;)
        if ((mask >> s.axes[d][i]) & 1u) s.axes[d].erase(i);
    if (s.order && !s.used()) s.order = 0;  // replicas are the same in every order
    return s;
  }
  constexpr bool operator==(const sharding&) const = default;
};

/// The indices of a dim that the device at these mesh coordinates holds. Each axis, major to minor, splits the remaining indices into
/// ceil-sized blocks, so the last blocks may be short or empty.
template <class Mesh, class Coordinates>
constexpr interval block_of(std::int64_t extent, const short_list& axes, const Mesh& mesh, const Coordinates& at) {
  interval held{0, extent};
  for (int i = 0; i < axes.size(); ++i) {
    const auto a = std::size_t(axes[i]);
    const std::int64_t length = held.size(), block = (length + mesh[a] - 1) / mesh[a], start = block * at[a];
    held.begin += start < length ? start : length;
    if (held.size() > block) held.end = held.begin + block;
  }
  return held;
}

}}  // namespace gshard::v0

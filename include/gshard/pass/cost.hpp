// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/base/list.hpp>
#include <gshard/base/list_view.hpp>
#include <gshard/ir/graph.hpp>
#include <gshard/ir/mesh.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 {

/// Extents of a program's dims and of its mesh, real or assumed: what a plan is priced with.
struct extents {
  list<std::int64_t> dims;
  std::array<int, max_axes> axes{};

  constexpr std::int64_t dim(int i) const { return dims[std::size_t(i)]; }
  constexpr int axis(int a) const { return axes[std::size_t(a)]; }
  /// The number of devices along the axes of a mask.
  constexpr std::int64_t devices(std::uint32_t mask) const {
    std::int64_t n = 1;
    for (int a = 0; a < max_axes; ++a)
      if ((mask >> a) & 1u) n *= axis(a);
    return n;
  }
};

namespace detail {
/// Extents to choose a plan by where the real ones are not known yet. Only their order of magnitude matters.
inline constexpr std::int64_t assumed_dim = 64;
inline constexpr int assumed_axis = 8;

constexpr extents assume_extents(list_view<dim> dims, const mesh_shape& mesh, const gshard::dims& known) {
  extents e;
  for (const dim& d : dims) {
    const std::int64_t bound = d.what == dim::kind::bound ? known.find(d.letter) : derived_extent(d, e.dims);
    e.dims.push_back(bound >= 0 ? bound : assumed_dim);
  }
  for (int a = 0; a < mesh.count; ++a)
    e.axes[std::size_t(a)] = mesh.static_extent(a) == dynamic ? assumed_axis : mesh.static_extent(a);
  return e;
}
}  // namespace detail

/// The largest shard of a tensor in elements: every cut rounds up.
constexpr std::int64_t shard_elements(const dim_list& dims, const sharding& layout, const extents& e) {
  std::int64_t n = 1;
  for (int d = 0; d < dims.size(); ++d) {
    std::int64_t extent = e.dim(dims[d]);
    for (int i = 0; i < layout[d].size(); ++i) {
      const std::int64_t cuts = e.axis(layout[d][i]);
      extent = (extent + cuts - 1) / cuts;
    }
    n *= extent;
  }
  return n;
}

/// Sums whose addends are together at most so many bytes are made by gathering all of them: one latency instead of two.
inline constexpr std::int64_t small_sum_bytes = 4096;

/// Bytes that one device sends in a collective whose operand's shard has `shard_bytes`, in a group of n devices: what the executor
/// does, exactly where the shard divides by n.
constexpr std::int64_t bytes_sent(op kind, std::int64_t shard_bytes, std::int64_t n) {
  if (n <= 1) return 0;
  switch (kind) {
    case op::all_gather: return shard_bytes * (n - 1);
    case op::all_reduce: return shard_bytes * n <= small_sum_bytes ? shard_bytes * (n - 1) : 2 * (shard_bytes * (n - 1) / n);
    case op::reduce_scatter:
    case op::all_to_all: return shard_bytes * (n - 1) / n;
    case op::collective_permute: return shard_bytes;
    default: return 0;
  }
}

}}  // namespace gshard::v0

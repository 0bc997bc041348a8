// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The cost model: sizes of shards, and bytes that a device receives in a collective.

#include <gshard/core/base/counting.hpp>
#include <gshard/core/base/list.hpp>
#include <gshard/core/base/list_view.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/ir/mesh.hpp>
#include <gshard/core/ir/window.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 {

/// The cost of starting a collective on an unknown machine, as bytes that could be sent in that time: about 10 microseconds at 6 GB/s.
/// @see runs_on
inline constexpr std::int64_t default_start_bytes = 1 << 16;

/// Extents of a program's dims and of its mesh axes, known or assumed, to price a plan.
struct extents {
  list<std::int64_t> dims;
  std::array<int, max_axes> axes{};
  std::uint32_t known_axes = 0;  // mask of the axes whose extents are known, not assumed
  list<char> known_dims;         // by dim: 1 if its extent is known, not assumed; empty: none is known
  std::int64_t start_bytes = default_start_bytes;  // of the network

  constexpr bool knows_dim(int i) const { return std::size_t(i) < known_dims.size() && known_dims[std::size_t(i)]; }
  constexpr std::int64_t dim(int i) const { return dims[std::size_t(i)]; }
  constexpr int axis(int a) const { return axes.data()[a]; }
  /// The number of devices along the axes of a mask.
  constexpr std::int64_t devices(std::uint32_t mask) const {
    std::int64_t n = 1;
    for (int a = 0; mask != 0; ++a, mask >>= 1)
      if (mask & 1u) n *= axis(a);
    return n;
  }
};

namespace detail {
/// Extents that are assumed until the real ones are known. Only their order of magnitude matters.
inline constexpr std::int64_t assumed_dim = 64;
inline constexpr int assumed_axis = 8;

/// True if the extent of a derived dim is known, given which of the dims before it are known.
constexpr bool is_known(const dim& d, const extents& before) {
  switch (d.what) {
    case dim::kind::bound: return false;
    case dim::kind::fixed: return true;
    case dim::kind::linear: return before.knows_dim(d.first) && (d.second_times == 0 || before.knows_dim(d.second));
    case dim::kind::rounded: return before.knows_dim(d.first);
    case dim::kind::blocks: return (d.first & ~before.known_axes) == 0;
    default: return before.knows_dim(d.first) && before.knows_dim(d.second);
  }
}

/// `assumed`, `assumed_axes`: extents to assume, by letter and by axis, in place of the common ones.
constexpr extents assume_extents(list_view<dim> dims, const mesh_shape& mesh, const gshard::dims& known,
                                 std::int64_t start_bytes = default_start_bytes, const gshard::dims& assumed = {},
                                 list_view<int> assumed_axes = {}) {
  extents e;
  e.start_bytes = start_bytes;
  for (int a = 0; a < mesh.count; ++a) {
    const int extent = mesh.static_extent(a), given = assumed_axes.empty() ? 0 : assumed_axes[std::size_t(a)];
    e.axes[std::size_t(a)] = extent != dynamic ? extent : given > 0 ? given : assumed_axis;
    if (extent != dynamic) e.known_axes |= 1u << a;
  }
  for (const dim& d : dims) {
    const std::int64_t bound = d.what == dim::kind::bound ? known.find(d.letter) : derived_extent(d, e.dims, e.axes);
    const bool known_dim = d.what == dim::kind::bound ? bound >= 0 : is_known(d, e);
    // No dim is assumed to be empty. A difference of two assumed extents is 0; it is assumed to be 1, because it may be small (extra expert
    // replicas).
    const std::int64_t given = d.what == dim::kind::bound ? assumed.find(d.letter) : 0;
    const std::int64_t likely = given > 0 ? given : bound == 0 && d.what == dim::kind::linear ? 1 : assumed_dim;
    e.dims.push_back(bound > 0 || (known_dim && bound == 0) ? bound : likely);
    e.known_dims.push_back(known_dim);
  }
  return e;
}
}  // namespace detail

/// True if the bytes of a tensor, and therefore of its shards, can be counted. @see max_tensor_bytes
constexpr bool is_countable(const value& v, const extents& e) {
  byte_count n(size_of(v.type));
  for (int d = 0; d < v.dims.size(); ++d) n.times(e.dim(v.dims[d]));
  return n.is_countable();
}

/// The extent of the largest shard of a dim over these axes. Each axis rounds up.
constexpr std::int64_t shard_extent(int dim, const short_list& axes, const extents& e) {
  std::int64_t extent = e.dim(dim);
  for (int i = 0; i < axes.size(); ++i) {
    const std::int64_t shards = e.axis(axes[i]);
    extent = (extent + shards - 1) / shards;
  }
  return extent;
}
/// The largest shard of a tensor in elements.
constexpr std::int64_t shard_elements(const dim_list& dims, const sharding& layout, const extents& e) {
  std::int64_t n = 1;
  const std::int64_t* const extents = e.dims.data();
  for (int d = 0; d < dims.count; ++d) {
    std::int64_t extent = extents[dims[d]];
    const short_list& axes = layout.axes[d];
    for (int i = 0; i < axes.count; ++i) {
      const std::int64_t shards = e.axis(axes[i]);
      extent = (extent + shards - 1) / shards;
    }
    n *= extent;
  }
  return n;
}

/// If the addends of a sum have at most this number of bytes in total, all addends are gathered, which takes one latency instead of two.
inline constexpr std::int64_t small_sum_bytes = 4096;

namespace detail {
/// The missing bytes of a device's new shard when a tensor is resharded, on the device that lacks most.
constexpr std::int64_t bytes_lacking(const value& v, const sharding& from, const sharding& to, const extents& e) {
  const std::int64_t bytes = shard_elements(v.dims, to, e) * size_of(v.type);
  std::int64_t pieces = 1;  // the device holds one of this many equal pieces of its new shard
  for (int d = 0; d < to.rank; ++d) {
    const short_list &before = from.axes[d], &after = to.axes[d];
    if (before.count == 0 || before.is_prefix_of(after)) continue;
    if (!after.is_prefix_of(before)) return bytes;
    pieces *= e.devices(before.mask()) / e.devices(after.mask());
  }
  return bytes - bytes / pieces;
}
}  // namespace detail

/// Bytes that the busiest of n devices receives when they sum `bytes` bytes of each. Small sums gather all addends. In larger sums each
/// device sums a block of ceil(numbers / n). The first device has the largest block.
constexpr std::int64_t bytes_of_sum(std::int64_t bytes, dtype type, std::int64_t n) {
  if (bytes <= small_sum_bytes / n) return bytes * (n - 1);
  const std::int64_t width = size_of(traits(type).part), numbers = bytes / width;
  return bytes + width * (n - 2) * ((numbers + n - 1) / n);
}

/// The planner's largest price of a collective, so that its prices can be added.
inline constexpr std::int64_t most_price = max_tensor_bytes;

/// The planner's estimate of the bytes that the busiest device receives when a collective over some axes reshards a tensor, if extents
/// divide evenly. @see plan_view::bytes_received
constexpr std::int64_t bytes_received(op_ref kind, std::uint32_t axes, const value& v, const sharding& from,
                                      const sharding& to, const extents& e) {
  const std::int64_t n = e.devices(axes);
  if (n <= 1) return 0;
  if (kind == op::all_reduce) return bytes_of_sum(shard_elements(v.dims, from, e) * size_of(v.type), v.type, n);
  if (kind == op::reduce_scatter) {
    const std::int64_t bytes = detail::saturating_product(shard_elements(v.dims, to, e) * size_of(v.type), n - 1);
    return bytes < most_price ? bytes : most_price;
  }
  return kind->collective && kind->reshards ? detail::bytes_lacking(v, from, to, e) : 0;
}

}}  // namespace gshard::v0

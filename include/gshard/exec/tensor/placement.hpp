// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Computes which shard of a tensor a device holds under a sharding.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/base/counting.hpp>
#include <gshard/core/ir/sharding.hpp>
#include <gshard/exec/backend/device_group.hpp>
#include <gshard/exec/kernel/view.hpp>
#include <gshard/exec/process/error.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gshard { inline namespace v0 {

/// The shard of a tensor that a device holds. Every axis of a dim, major to minor, splits the remaining block into ceil-sized blocks, so
/// the last shards may be short or empty.
kernel::placement place(std::span<const std::int64_t> extents, const sharding& layout, std::span<const int> mesh, int device);

namespace detail {
/// The number of bytes of a tensor's elements. Throws `gshard::error` if they cannot be counted. @see max_tensor_bytes
std::int64_t bytes_of(std::span<const std::int64_t> extents, std::int64_t width, std::string_view tensor);
}  // namespace detail

#if GSHARD_HAS_BODIES

GSHARD_INLINE kernel::placement place(std::span<const std::int64_t> extents, const sharding& layout, std::span<const int> mesh,
                                      int device) {
  const auto coordinates = coordinates_of(mesh, device);
  kernel::placement p;
  p.rank = int(extents.size());
  for (std::size_t d = 0; d < extents.size(); ++d) {
    const interval block = block_of(extents[d], layout[int(d)], mesh, coordinates);
    p.extent[d] = block.size();
    p.offset[d] = block.begin;
    p.global[d] = extents[d];
  }
  return p;
}

namespace detail {
GSHARD_INLINE std::int64_t bytes_of(std::span<const std::int64_t> extents, std::int64_t width, std::string_view tensor) {
  byte_count n(width);
  for (const std::int64_t e : extents) n.times(e);
  if (n.is_countable()) return n.bytes();
  std::string text = std::string(tensor) + ": ";
  for (std::size_t d = 0; d < extents.size(); ++d) text += (d ? " x " : "") + std::to_string(extents[d]);
  throw error(text + " elements are more than can be counted");
}
}  // namespace detail

#endif

}}  // namespace gshard::v0

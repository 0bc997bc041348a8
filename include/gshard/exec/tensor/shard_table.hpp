// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The shards of a tensor on all devices of a cluster: their placements, and the devices with equal shards.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/ir/sharding.hpp>
#include <gshard/core/ir/spec.hpp>
#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/backend/device_group.hpp>
#include <gshard/exec/kernel/view.hpp>
#include <gshard/exec/tensor/cluster.hpp>
#include <gshard/exec/tensor/placement.hpp>
#include <gshard/exec/tensor/tensor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

class shard_table {
 public:
  shard_table() = default;
  /// `width`: bytes of an element. Throws `gshard::error` as the constructor of `tensor`.
  shard_table(const any_cluster& on, std::span<const std::int64_t> extents, const named_sharding& spec, std::int64_t width);

  int devices() const { return int(shards_.size()); }
  const kernel::placement& operator[](int device) const { return shards_[std::size_t(device)]; }
  /// True if two devices have the same coordinates along the axes that do not shard the tensor. Among devices with equal shards, exactly
  /// one is aligned with any given device.
  bool are_aligned(int a, int b) const { return replica_[std::size_t(a)] == replica_[std::size_t(b)]; }
  /// True for the first of the devices with equal shards.
  bool is_first(int device) const { return replica_[std::size_t(device)] == coordinates{}; }
  /// The sharding as a fact for other processes.
  fact places() const;

 private:
  using coordinates = std::array<int, max_axes>;
  std::vector<kernel::placement> shards_;  // by device
  std::vector<coordinates> replica_;       // by device: its coordinates, 0 along axes that shard the tensor
};

#if GSHARD_HAS_BODIES

GSHARD_INLINE shard_table::shard_table(const any_cluster& on, std::span<const std::int64_t> extents, const named_sharding& spec,
                                       std::int64_t width) {
  check_extents(extents, spec, width);
  const std::span<const int> mesh = on.backend().extents();
  const sharding layout = resolve_on(spec, on.mesh());
  const device_positions position(spec, on);
  for (int device = 0; device < on.size(); ++device) {
    shards_.push_back(place(extents, layout, mesh, position(device)));
    replica_.push_back(coordinates_of(mesh, position(device)));
    for (std::size_t axis = 0; axis < mesh.size(); ++axis)
      if (layout.used() >> axis & 1u) replica_.back()[axis] = 0;
  }
}

GSHARD_INLINE fact shard_table::places() const {
  std::string text;
  for (const kernel::placement& s : shards_) text += extents_text({s.offset.data(), std::size_t(s.rank)});
  return {"the first elements of the shards", text};
}

#endif

}}}  // namespace gshard::v0::detail

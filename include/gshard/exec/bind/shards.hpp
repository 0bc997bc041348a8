// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The values of a bound plan: element type, sharding, and the placement and address of every local shard.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/exec/kernel/element.hpp>
#include <gshard/exec/kernel/view.hpp>
#include <gshard/exec/tensor/cluster.hpp>
#include <gshard/exec/tensor/placement.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 {

namespace detail {

/// Maps the mesh axes of a plan to axes of a cluster, by name.
class axis_map {
 public:
  axis_map() = default;
  axis_map(const mesh_shape& plan, const any_cluster& on) {
    for (int a = 0; a < plan.rank(); ++a) {
      const int b = on.mesh().find(plan.name(a));
      if (b < 0) throw error("program: the cluster has no mesh axis called \"" + std::string(plan.name(a)) + "\"");
      to_[std::size_t(a)] = b;
    }
  }
  sharding operator()(const sharding& s) const {
    sharding t = sharding::replicated(s.rank);
    for (int d = 0; d < s.rank; ++d)
      for (int i = 0; i < s[d].size(); ++i) t[d].push_back(to_[std::size_t(s[d][i])]);
    t.partial = std::uint8_t(mask(s.partial));
    t.pending = s.pending;
    return t;
  }
  int operator[](int axis) const { return to_[std::size_t(axis)]; }
  std::uint32_t mask(std::uint32_t axes) const {
    std::uint32_t m = 0;
    for (std::size_t a = 0; a < to_.size(); ++a)
      if ((axes >> a) & 1u) m |= 1u << to_[a];
    return m;
  }

 private:
  std::array<int, max_axes> to_{};
};

/// The window of a dim with a halo. A device holds the elements that its block of another dim, of extent `over`, reads.
struct held_window {
  std::int64_t over = -1;  // -1: no window, the device holds its own block
  bound_window reads;
};

/// One value of a plan on this process: its sharding, and the block and address of every local shard.
struct bound_value {
  dtype type = dtype::f32;
  std::vector<std::int64_t> extents;        // global
  sharding layout;                          // on the cluster's axes
  std::vector<held_window> windows;         // per dim, or empty
  std::vector<int> positions;               // per device of the cluster: its position in the tensor's device order; empty: the mesh's order
  std::vector<kernel::placement> places;    // per held device: its block of the tensor
  std::vector<std::byte*> data;             // per held device
  std::vector<const std::byte*> everywhere;  // per device of the cluster, if this process can read all shards; otherwise empty

  std::int64_t elements(std::size_t device) const { return kernel::element_count(places[device].rank, places[device].extent); }
  std::int64_t bytes(std::size_t device) const { return elements(device) * size_of(type); }
  /// The bytes of the largest shard.
  std::int64_t most_bytes() const {
    std::int64_t most = 0;
    for (std::size_t i = 0; i < data.size(); ++i) most = std::max(most, bytes(i));
    return most;
  }
  template <class T>
  T* as(std::size_t device) const {
    return reinterpret_cast<T*>(data[device]);
  }
  std::int64_t extent(std::size_t device, int d) const { return places[device].extent[std::size_t(d)]; }
  /// Product of the shard's extents of dims [from, to).
  std::int64_t span(std::size_t device, int from, int to) const {
    std::int64_t n = 1;
    for (int d = from; d < to; ++d) n *= extent(device, d);
    return n;
  }
  /// Copies the shards to memory of the same sizes, an address per held device.
  void copy_to(std::span<std::byte* const> memory) const {
    for (std::size_t d = 0; d < memory.size(); ++d)
      if (bytes(d) > 0) std::memcpy(memory[d], data[d], std::size_t(bytes(d)));
  }
  int rank() const { return int(extents.size()); }
  int position(int device) const { return positions.empty() ? device : positions[std::size_t(device)]; }
};

/// "f32[8@data,4]+model": element type, extents, the mesh axes that shard each dim, and the axes of partial sums.
std::string layout_text(const bound_value& v, const mesh_shape& mesh);

/// The block of a value that a device of the mesh holds.
kernel::placement place(const bound_value& v, std::span<const int> mesh, int device);

}  // namespace detail

#if GSHARD_HAS_BODIES

namespace detail {

GSHARD_INLINE std::string layout_text(const bound_value& v, const mesh_shape& mesh) {
  std::string s = std::string(name(v.type)) + "[";
  for (int d = 0; d < v.rank(); ++d) {
    s.append(d ? "," : "").append(std::to_string(v.extents[std::size_t(d)]));
    for (int i = 0; i < v.layout[d].size(); ++i) s.append("@").append(mesh.name(v.layout[d][i]));
  }
  s += ']';
  for (int a = 0; a < mesh.rank(); ++a)
    if (v.layout.is_partial(a)) s.append("+").append(mesh.name(a));
  if (v.layout.partial != 0 && v.layout.pending != reduction::sum) s.append(" by reduction ").append(std::to_string(int(v.layout.pending)));
  for (const held_window& w : v.windows)
    if (w.over >= 0) s.append(" with a window over ").append(std::to_string(w.over));
  if (!v.positions.empty()) s += " in the device order";
  for (const int position : v.positions) s.append(" ").append(std::to_string(position));
  return s;
}

GSHARD_INLINE kernel::placement place(const bound_value& v, std::span<const int> mesh, int device) {
  device = v.position(device);
  kernel::placement p = gshard::place(v.extents, v.layout, mesh, device);
  for (std::size_t d = 0; d < v.windows.size(); ++d) {
    if (v.windows[d].over < 0) continue;
    const interval read = reach(
        v.windows[d].reads, block_of(v.windows[d].over, v.layout[int(d)], mesh, coordinates_of(mesh, device)),
        v.extents[d]);
    p.offset[d] = read.begin;
    p.extent[d] = read.size();
  }
  return p;
}

}  // namespace detail

#endif
}}  // namespace gshard::v0

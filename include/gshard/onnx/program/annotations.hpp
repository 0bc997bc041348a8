// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The sharding annotations of a model (ONNX's ShardingSpecProto, since IR version 11) as shardings on a mesh.

#include <gshard/core/base/counting.hpp>
#include <gshard/core/ir/mesh.hpp>
#include <gshard/core/ir/spec.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/onnx/file/model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx {

/// The mesh axes that shard the dims that an annotation names, major to minor. ONNX numbers devices, and does not name axes.
using sharded_axes = std::vector<std::pair<std::int64_t, int>>;

namespace annotating {

/// The devices that hold shard i of an annotation, in order.
inline std::vector<std::int64_t> holders(const model_sharding& s, std::size_t i) {
  const std::int64_t id = s.devices[i];
  for (const auto& [group, devices] : s.groups)
    if (group == id) {
      std::vector<std::int64_t> all = devices;
      std::sort(all.begin(), all.end());
      return all;
    }
  return {id};
}
/// The devices of a mesh that hold shard i, if these axes shard a tensor, the first one the major one.
inline std::vector<std::int64_t> expected_holders(const mesh_shape& mesh, const sharded_axes& axes, std::int64_t i) {
  std::vector<int> wanted(std::size_t(mesh.rank()), -1);
  for (std::size_t k = axes.size(); k-- > 0;) {
    const int extent = mesh.static_extent(axes[k].second);
    wanted[std::size_t(axes[k].second)] = int(i % extent);
    i /= extent;
  }
  std::vector<std::int64_t> found;
  for (std::int64_t device = 0; device < mesh.static_devices(); ++device) {
    std::int64_t rest = device;
    bool holds = true;
    for (int a = mesh.rank(); a-- > 0;) {
      const int at = int(rest % mesh.static_extent(a));
      rest /= mesh.static_extent(a);
      holds = holds && (wanted[std::size_t(a)] < 0 || wanted[std::size_t(a)] == at);
    }
    if (holds) found.push_back(device);
  }
  return found;
}
inline bool fits(const mesh_shape& mesh, const model_sharding& s, const sharded_axes& axes) {
  for (std::size_t i = 0; i < s.devices.size(); ++i)
    if (holders(s, i) != expected_holders(mesh, axes, std::int64_t(i))) return false;
  return true;
}
/// Tries the axes of the mesh for the sharded dim k, of which axes so far have made `made` shards.
inline bool assign(const mesh_shape& mesh, const model_sharding& s, sharded_axes& axes, std::size_t k = 0, std::int64_t made = 1) {
  if (k == s.dims.size()) return fits(mesh, s, axes);
  const std::int64_t wanted = s.dims[k].shards.at(0);
  if (made == wanted) return assign(mesh, s, axes, k + 1);
  for (int a = 0; a < mesh.rank(); ++a) {
    const int extent = mesh.static_extent(a);
    const bool used = std::any_of(axes.begin(), axes.end(), [&](const auto& before) { return before.second == a; });
    if (used || extent < 2 || wanted % (made * extent) != 0) continue;
    axes.emplace_back(s.dims[k].axis, a);
    if (assign(mesh, s, axes, k, made * extent)) return true;
    axes.pop_back();
  }
  return false;
}

}  // namespace annotating

/// The axes of a mesh that shard a tensor as annotated. The extents of all axes must be stated, as in "data=2,model=4".
/// Throws `gshard::error` if no axes do.
inline sharded_axes axes_of(const model_sharding& s, const mesh_shape& mesh) {
  const auto fail = [&](const std::string& why) { throw error("the sharding of \"" + s.tensor.substr(0, 200) + "\" " + why); };
  for (int a = 0; a < mesh.rank(); ++a)
    if (mesh.static_extent(a) == dynamic) fail("is for numbered devices: state the extents of all mesh axes");
  std::int64_t shards = 1;
  for (const model_sharded_dim& d : s.dims) {
    if (d.shards.size() != 1 || d.shards[0] < 1 || d.shards[0] > max_devices)
      fail("shards a dim that was made of several, or not into equal parts");
    shards = detail::saturating_product(shards, d.shards[0]);
  }
  if (shards != std::int64_t(s.devices.size()))
    fail("has " + std::to_string(shards) + " shards on " + std::to_string(s.devices.size()) + " devices or groups");
  sharded_axes axes;
  if (!annotating::assign(mesh, s, axes)) fail("is not one over axes of this mesh");
  return axes;
}

/// The spec of these axes for a tensor of this rank.
inline named_sharding spec_of(const sharded_axes& axes, const mesh_shape& mesh, int rank, std::string_view tensor) {
  named_sharding spec;
  spec.rank = rank;
  for (const auto& [dim, axis] : axes) {
    if (dim < -rank || dim >= rank)
      throw error("the sharding of \"" + std::string(tensor) + "\" names dim " + std::to_string(dim) + " of " + std::to_string(rank));
    spec.add(mesh.name(axis), int(dim < 0 ? dim + rank : dim));
  }
  return spec;
}

/// The annotated tensors of a model's graph in a device configuration, by name. Empty: the first configuration that a node names.
inline std::map<std::string, sharded_axes> annotations_of(const model& m, const mesh_shape& mesh, std::string configuration) {
  std::map<std::string, sharded_axes> all;
  for (const model_node& n : m.graph.nodes)
    for (const model_placement& p : n.placements) {
      if (configuration.empty()) configuration = p.configuration;
      if (p.configuration != configuration) continue;
      for (const model_sharding& s : p.shardings) all[s.tensor] = axes_of(s, mesh);
    }
  return all;
}

}}}  // namespace gshard::v0::onnx

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The parts of a tensor that do not depend on its type: extents, sharding, and the bytes of its local shards.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/ir/dtype.hpp>
#include <gshard/core/ir/spec.hpp>
#include <gshard/exec/kernel/view.hpp>
#include <gshard/exec/tensor/buffer.hpp>
#include <gshard/exec/tensor/cluster.hpp>
#include <gshard/exec/tensor/tensor_origin.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#if GSHARD_HAS_BODIES
#include <gshard/core/ir/device_order.hpp>
#include <gshard/exec/tensor/placement.hpp>

#include <string>
#endif

namespace gshard { inline namespace v0 {

namespace detail {
struct tensor_access;
}  // namespace detail

/// The base of all tensors. Its element type and sharding are run-time values.
/// @see tensor
class untyped_tensor {
 public:
  const any_cluster& cluster() const { return cluster_; }
  dtype type() const { return type_; }
  std::span<const std::int64_t> extents() const { return extents_; }
  std::int64_t extent(int d) const { return extents_[std::size_t(d)]; }
  /// The number of elements.
  std::int64_t size() const {
    std::int64_t n = 1;
    for (const std::int64_t e : extents_) n *= e;
    return n;
  }
  /// The sharding on the axes of the cluster, in the mesh's order of devices. If the spec of a typed tensor has a device order, that order
  /// assigns these shards to devices.
  const sharding& layout() const { return layout_; }

  /// The number of shards of this process, one per device of cluster().devices().
  std::size_t local_shards() const { return memory_.size(); }
  /// The bytes of a shard, contiguous and row-major, and its placement in the global tensor.
  std::byte* shard(std::size_t i) { return memory_[i].data(); }
  const std::byte* shard(std::size_t i) const { return memory_[i].data(); }
  const kernel::placement& place(std::size_t i) const { return places_[i]; }

 protected:
  /// `spec`: the sharding by names of axes. `lent`: see the constructors of `tensor`, which throw the same.
  untyped_tensor(any_cluster on, std::vector<std::int64_t> extents, const named_sharding& spec, dtype type,
                 std::optional<std::span<std::byte* const>> lent = {});
  untyped_tensor(untyped_tensor&&) = default;
  untyped_tensor& operator=(untyped_tensor&&) = default;
  ~untyped_tensor() = default;

 private:
  friend detail::tensor_access;
  any_cluster cluster_;
  std::vector<std::int64_t> extents_;
  dtype type_;
  sharding layout_;
  std::vector<kernel::placement> places_;
  std::vector<buffer> memory_;
  detail::tensor_origin origin_;
};

namespace detail {
/// A result of a program, before it gets its type.
class untyped_result : public untyped_tensor {
 public:
  untyped_result(any_cluster on, std::vector<std::int64_t> extents, const named_sharding& spec, dtype type,
                 std::optional<std::span<std::byte* const>> lent = {})
      : untyped_tensor(std::move(on), std::move(extents), spec, type, lent) {}
};

/// The parts of a tensor that operations and programs use.
struct tensor_access {
  /// Processes compare the origin to check that all pass the same tensor to a collective call.
  static const tensor_origin& origin(const untyped_tensor& t) { return t.origin_; }
  static void set_origin(untyped_tensor& t, const tensor_origin& origin) { t.origin_ = origin; }
  template <class Tensor>
  static Tensor typed(untyped_result&& t) {
    return Tensor(std::move(t));
  }
};
}  // namespace detail

#if GSHARD_HAS_BODIES

namespace detail {

/// Resolves the axis names of a spec on a mesh. A name that the mesh lacks is found at run time, because the type of a tensor does not
/// contain its mesh.
inline sharding resolve_on(const named_sharding& named, const mesh_shape& mesh) {
  diagnostic problem;
  const sharding s = resolve(named, mesh, "tensor", problem);
  if (problem)
    throw error("tensor: its partition spec " +
                std::string(problem.what == fault::unknown_axis
                                ? "names an axis that the mesh does not have: \""
                                : "uses twice the axis \"") +
                std::string(problem.word.view()) + "\"");
  return s;
}

/// The positions of the cluster's devices in the device order of a spec.
class device_positions {
 public:
  device_positions(const named_sharding& named, const any_cluster& on) : order_{named.order, named.order.empty() ? 0 : on.size()} {
    if (!named.order.empty() && !is_order(order_.rows, order_.devices))
      throw error("tensor: its order of devices does not have each of the cluster's " + std::to_string(order_.devices) + " once");
  }
  int operator()(int device) const { return order_.position(order_.rows.empty() ? 0 : 1, device); }

 private:
  device_orders order_;
};

/// Throws `gshard::error` unless a tensor may have these extents.
inline void check_extents(std::span<const std::int64_t> extents, const named_sharding& named, std::int64_t width) {
  if (int(extents.size()) != named.rank)
    throw error("tensor: " + std::to_string(extents.size()) + " extents for a spec of " + std::to_string(named.rank) + " dims");
  for (std::size_t d = 0; d < extents.size(); ++d)
    if (extents[d] < 0) throw error("tensor: extent " + std::to_string(extents[d]) + " of dim " + std::to_string(d));
  bytes_of(extents, width, "tensor");
}

}  // namespace detail

GSHARD_INLINE untyped_tensor::untyped_tensor(any_cluster on, std::vector<std::int64_t> extents, const named_sharding& spec, dtype type,
                                             std::optional<std::span<std::byte* const>> lent)
    : cluster_(std::move(on)),
      extents_(std::move(extents)),
      type_(type),
      layout_(detail::resolve_on(spec, cluster_.mesh())),
      origin_(cluster_.backend()) {
  const std::int64_t width = size_of(type);
  detail::check_extents(extents_, spec, width);
  const std::span<const int> devices = cluster_.devices();
  if (lent && lent->size() != devices.size())
    throw error("tensor: the memory of " + std::to_string(lent->size()) + " shards for " + std::to_string(devices.size()) +
                " local devices");
  const detail::device_positions position(spec, cluster_);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    places_.push_back(gshard::place(extents_, layout_, cluster_.backend().extents(), position(devices[i])));
    const std::int64_t bytes = kernel::element_count(places_.back().rank, places_.back().extent) * width;
    if (lent && (*lent)[i] != nullptr) memory_.emplace_back((*lent)[i], bytes);
    else memory_.emplace_back(bytes);
  }
}

#endif

}}  // namespace gshard::v0

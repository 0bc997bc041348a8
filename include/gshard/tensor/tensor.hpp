// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The distributed tensor, views of its shards, and from_global, which fills a tensor from a complete array.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/base/compiled.hpp>
#include <gshard/base/reason.hpp>
#include <gshard/ir/device_order.hpp>
#include <gshard/ir/spec.hpp>
#include <gshard/tensor/buffer.hpp>
#include <gshard/tensor/cluster.hpp>
#include <gshard/tensor/placement.hpp>
#include <gshard/tensor/tensor_origin.hpp>
#include <gshard/tensor/whole_array.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

/// One shard of a tensor: contiguous, row-major, with its placement in the global tensor.
template <class T>
struct shard_view {
  T* data;
  kernel::placement at;

  int rank() const { return at.rank; }
  std::int64_t extent(int d) const { return at.extent[std::size_t(d)]; }
  /// Global index of the shard's first element along dim d.
  std::int64_t offset(int d) const { return at.offset[std::size_t(d)]; }
  std::int64_t size() const { return kernel::element_count(at.rank, at.extent); }
  std::span<T> span() const { return {data, std::size_t(size())}; }
};

namespace detail {
template <class T>
std::vector<std::byte*> as_addresses(std::span<T* const> memory) {
  std::vector<std::byte*> all;
  for (T* const p : memory) all.push_back(reinterpret_cast<std::byte*>(p));
  return all;
}

/// The shards of a tensor on the devices of this process, uninitialized.
struct local_shards {
  /// `named`: the tensor's spec. `width`: bytes of an element. `lent`: see the constructors of `tensor`, which throw the same.
  local_shards(const any_cluster& on, std::span<const std::int64_t> extents, const named_sharding& named, std::int64_t width,
               std::optional<std::span<std::byte* const>> lent = {});

  sharding layout;
  std::vector<kernel::placement> places;
  std::vector<buffer> memory;
};
}  // namespace detail

/// A distributed tensor: `tensor<float, P<"data", none>>`. The type has the element type and the sharding. Extents and cluster are bound at
/// construction. All processes make the tensors of a cluster in the same order. A tensor owns the shards of this process's devices. A
/// tensor with a `device_order` can only be an input or output of programs. The operations on tensors (op/) do not take it.
template <class T, class Spec>
class tensor {
 public:
  using value_type = T;
  using layout_type = Spec;
  static constexpr int static_rank = Spec::rank;

  /// Uninitialized shards of a tensor with these global extents. Communicates nothing. Throws `gshard::error` for another number of
  /// extents, a negative one, or too little memory. Throws also for axes that the cluster lacks, and for a device order that does not fit
  /// the cluster.
  tensor(any_cluster on, std::vector<std::int64_t> extents)
      : cluster_(std::move(on)), extents_(std::move(extents)), shards_(cluster_, extents_, Spec::named, sizeof(T)),
        origin_(cluster_.on()) {}

  /// A tensor whose shards are the caller's memory: an address for each device of this process, contiguous and row-major. The memory must
  /// stay valid as long as the tensor and all tensors that were moved from it. A null pointer: the tensor allocates this shard.
  /// Throws also if the number of addresses is another than the number of local devices.
  tensor(any_cluster on, std::vector<std::int64_t> extents, std::span<T* const> memory)
      : cluster_(std::move(on)),
        extents_(std::move(extents)),
        shards_(cluster_, extents_, Spec::named, sizeof(T), detail::as_addresses<T>(memory)),
        origin_(cluster_.on()) {}

  const any_cluster& on() const { return cluster_; }
  std::span<const std::int64_t> extents() const { return extents_; }
  std::int64_t extent(int d) const { return extents_[std::size_t(d)]; }
  std::int64_t size() const {
    std::int64_t n = 1;
    for (std::int64_t e : extents_) n *= e;
    return n;
  }
  /// On the axes of the cluster, in the mesh's order of devices. If `layout_type::named.order` is another order, it gives the devices of
  /// these shards.
  const sharding& layout() const { return shards_.layout; }

  /// The number of shards of this process, one per device of on().devices().
  std::size_t local_shards() const { return shards_.memory.size(); }
  shard_view<T> local_shard(std::size_t i) { return {reinterpret_cast<T*>(shards_.memory[i].data()), shards_.places[i]}; }
  shard_view<const T> local_shard(std::size_t i) const { return {reinterpret_cast<const T*>(shards_.memory[i].data()), shards_.places[i]}; }

  /// What processes compare, so that all pass the same tensor to a collective call.
  const detail::tensor_origin& origin() const { return origin_; }
  void set_origin(const detail::tensor_origin& origin) { origin_ = origin; }

  /// The value of a scalar that is complete on every device.
  T item() const {
    static_assert(static_rank == 0, "gshard: item() is for scalars");
    static_assert(!is_partial, "gshard: a partial sum is used as a complete tensor; reshard it first");
    return *local_shard(0).data;
  }

  static constexpr bool is_partial = [] {
    for (int i = 0; i < Spec::named.count; ++i)
      if (Spec::named.items[std::size_t(i)].dim < 0) return true;
    return false;
  }();
  static_assert(!is_partial || has_sums(dtype_of<T>), "gshard: a partial sum of masks or half precision, which are not added");

 private:
  any_cluster cluster_;
  std::vector<std::int64_t> extents_;
  detail::local_shards shards_;
  detail::tensor_origin origin_;
};

namespace detail {
template <class T>
inline constexpr bool is_tensor = false;
template <class T, class Spec>
inline constexpr bool is_tensor<tensor<T, Spec>> = true;
}  // namespace detail

/// Any type `tensor<T, P<...>>`.
template <class T>
concept distributed_tensor = detail::is_tensor<std::remove_cvref_t<T>>;

/// Calls f(view) for every shard of this process; view.offset(d) + i is a global index. The same loop works under MPI and under simulation.
template <class T, class Spec, class F>
void for_each_local_shard(tensor<T, Spec>& t, F f) {
  for (std::size_t i = 0; i < t.local_shards(); ++i) f(t.local_shard(i));
}
template <class T, class Spec, class F>
void for_each_local_shard(const tensor<T, Spec>& t, F f) {
  for (std::size_t i = 0; i < t.local_shards(); ++i) f(t.local_shard(i));
}

/// A tensor filled from a complete array on every process. The array is a contiguous row-major range of T, an Eigen matrix or vector, or an
/// xtensor array (with <gshard/tensor/xtensor.hpp>). Each device copies its shard from its own process's array. Matrices have the last dim
/// as columns and all others as rows. Matrices and xtensor arrays may have any memory order. Communicates nothing. Compile time: element
/// type. Throws `gshard::error` if the array has another size or other extents. The first operation on the tensor compares samples of the
/// arrays.
/// @see as_eigen
template <class T, class Spec, class Mesh, class Whole = std::span<const T>>
tensor<T, Spec> from_global(const cluster<Mesh>& on, std::vector<std::int64_t> extents, const Whole& whole) {
  static constexpr diagnostic problem = [] {
    diagnostic d;
    resolve(Spec::named, Mesh::shape, "tensor", d);
    return d;
  }();
  static_assert(holds<problem.what != fault::unknown_axis, unknown_axis<word<problem.word.length>(problem.word.view())>, Mesh>,
                "gshard: a partition spec names an axis that the mesh does not have");
  static_assert(holds<problem.what != fault::axis_used_twice, repeated_axis<word<problem.word.length>(problem.word.view())>>,
                "gshard: a partition spec uses one mesh axis twice");
  static_assert(!tensor<T, Spec>::is_partial, "gshard: a partial sum cannot be filled from complete data");
  detail::check_whole_array<T, Whole>();
  tensor<T, Spec> t(on, std::move(extents));
  if constexpr (detail::is_whole_array<Whole, T>)
    detail::read_whole<T>(whole, [&](const detail::whole_array<T>& given) {
      const auto stride = given.layout.strides_in(t.extents());
      if (!stride) throw error(detail::text_of_misfit(given.layout, t.extents(), "from_global: ", " for a tensor of "));
      for_each_local_shard(t, [&](shard_view<T> s) { detail::copy_shard_of(given.data, *stride, s.data, s.at); });
      if (detail::tensor_origin origin = t.origin(); origin.number != 0) {
        origin.array = detail::hash_of_samples(given, *stride, t.extents());
        t.set_origin(origin);
      }
    });
  return t;
}

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

GSHARD_INLINE local_shards::local_shards(const any_cluster& on, std::span<const std::int64_t> extents, const named_sharding& named,
                                         std::int64_t width, std::optional<std::span<std::byte* const>> lent)
    : layout(resolve_on(named, on.mesh())) {
  check_extents(extents, named, width);
  if (lent && lent->size() != on.devices().size())
    throw error("tensor: the memory of " + std::to_string(lent->size()) + " shards for " + std::to_string(on.devices().size()) +
                " local devices");
  const device_positions position(named, on);
  for (std::size_t i = 0; i < on.devices().size(); ++i) {
    places.push_back(place(extents, layout, on.on().extents(), position(on.devices()[i])));
    const std::int64_t bytes = kernel::element_count(places.back().rank, places.back().extent) * width;
    if (lent && (*lent)[i] != nullptr) memory.emplace_back((*lent)[i], bytes);
    else memory.emplace_back(bytes);
  }
}

}  // namespace detail
#endif

}}  // namespace gshard::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The distributed tensor, views of its shards, and from_global, which fills a tensor from a complete array.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/ir/spec.hpp>
#include <gshard/core/program/check.hpp>
#include <gshard/exec/kernel/view.hpp>
#include <gshard/exec/tensor/cluster.hpp>
#include <gshard/exec/tensor/untyped_tensor.hpp>
#include <gshard/exec/tensor/whole_array.hpp>

#include <cstddef>
#include <cstdint>
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
}  // namespace detail

/// A distributed tensor: `tensor<float, P<"data", none>>`. The type has the element type and the sharding. Extents and cluster are bound at
/// construction. All processes make the tensors of a cluster in the same order. A tensor owns the shards of this process's devices. A
/// tensor with a `device_order` can only be an input or output of programs. The operations on tensors (eager/) do not take it.
template <class T, class Spec>
class tensor : public untyped_tensor {
 public:
  using value_type = T;
  using layout_type = Spec;
  static constexpr int static_rank = Spec::rank;

  /// Uninitialized shards of a tensor with these global extents. Communicates nothing. Throws `gshard::error` for a wrong number of
  /// extents, a negative extent, or too little memory. Throws also for axes that the cluster lacks, and for a device order that does not
  /// fit the cluster.
  tensor(any_cluster on, std::vector<std::int64_t> extents)
      : untyped_tensor(std::move(on), std::move(extents), Spec::named, dtype_of<T>) {}

  /// A tensor whose shards are the caller's memory: an address for each device of this process, contiguous and row-major. The memory must
  /// stay valid as long as the tensor and all tensors that were moved from it. A null pointer: the tensor allocates this shard.
  /// Throws also if the number of addresses differs from the number of local devices.
  tensor(any_cluster on, std::vector<std::int64_t> extents, std::span<T* const> memory)
      : untyped_tensor(std::move(on), std::move(extents), Spec::named, dtype_of<T>, detail::as_addresses<T>(memory)) {}

  shard_view<T> local_shard(std::size_t i) { return {reinterpret_cast<T*>(shard(i)), place(i)}; }
  shard_view<const T> local_shard(std::size_t i) const { return {reinterpret_cast<const T*>(shard(i)), place(i)}; }

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
  friend detail::tensor_access;
  /// The result of a program, which has this element type and sharding.
  explicit tensor(detail::untyped_result&& t) : untyped_tensor(std::move(t)) {}
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

namespace detail {
void fill_from_global(untyped_tensor& t, const untyped_array& given);
}

/// A tensor filled from a complete array on every process. The array is a contiguous row-major range of T, an Eigen matrix or vector, or an
/// xtensor array (with <gshard/exec/tensor/xtensor.hpp>). Each device copies its shard from its own process's array. Matrices have the last
/// dim as columns and all others as rows. Matrices and xtensor arrays may have any memory order. Communicates nothing. Compile time:
/// element type. Throws `gshard::error` if the array has another size or other extents. The first operation on the tensor compares samples
/// of the arrays.
/// @see as_eigen
template <class T, class Spec, class Mesh, class Whole = std::span<const T>>
tensor<T, Spec> from_global(const cluster<Mesh>& on, std::vector<std::int64_t> extents, const Whole& whole) {
  static constexpr diagnostic problem = [] {
    diagnostic d;
    resolve(Spec::named, Mesh::shape, "tensor", d);
    return d;
  }();
  static_assert(detail::check_program<problem.what, problem, Mesh>());
  static_assert(!tensor<T, Spec>::is_partial, "gshard: a partial sum cannot be filled from complete data");
  detail::check_whole_array<T, Whole>();
  tensor<T, Spec> t(on, std::move(extents));
  if constexpr (detail::is_whole_array<Whole, T>)
    detail::read_whole<T>(whole, [&](const detail::whole_array<T>& given) { detail::fill_from_global(t, given); });
  return t;
}

#if GSHARD_HAS_BODIES
GSHARD_INLINE void detail::fill_from_global(untyped_tensor& t, const untyped_array& given) {
  const auto stride = given.layout.strides_in(t.extents());
  if (!stride) throw error(text_of_misfit(given.layout, t.extents(), "from_global: ", " for a tensor of "));
  for (std::size_t i = 0; i < t.local_shards(); ++i) copy_shard_of(given.data, *stride, t.shard(i), t.place(i), size_of(given.type));
  if (tensor_origin origin = tensor_access::origin(t); origin.number != 0) {
    origin.array = hash_of_samples(given, *stride, t.extents());
    tensor_access::set_origin(t, origin);
  }
}
#endif

}}  // namespace gshard::v0

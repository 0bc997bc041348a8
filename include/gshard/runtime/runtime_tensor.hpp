// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A distributed tensor whose element type and sharding are known at run time, with typed views.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/ir/spec.hpp>
#include <gshard/exec/tensor/cluster.hpp>
#include <gshard/exec/tensor/tensor.hpp>
#include <gshard/exec/tensor/tensor_text.hpp>
#include <gshard/exec/tensor/untyped_tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#if GSHARD_HAS_BODIES
#include <gshard/exec/bind/shards.hpp>

#include <span>
#endif

namespace gshard { inline namespace v0 {

/// A distributed tensor whose element type and sharding are values: `runtime_tensor t(cluster, "f32[B@data,M]", {64, 512})`. The letters
/// only count the dims. `as<tensor<float, P<"B@data,M">>>()` is a typed view of it.
/// @see tensor, runtime_executable
class runtime_tensor : public untyped_tensor {
 public:
  /// Uninitialized shards. Throws as the constructor of `tensor`.
  runtime_tensor(any_cluster on, const tensor_text& text, std::vector<std::int64_t> extents)
      : untyped_tensor(std::move(on), std::move(extents), text.dims.sharding, text.type) {}

  /// The shards as elements of T. Throws `gshard::error` if the tensor has another element type.
  template <class T>
  shard_view<T> local_shard(std::size_t i) {
    check(dtype_of<T>);
    return {reinterpret_cast<T*>(shard(i)), place(i)};
  }
  template <class T>
  shard_view<const T> local_shard(std::size_t i) const {
    check(dtype_of<T>);
    return {reinterpret_cast<const T*>(shard(i)), place(i)};
  }

  /// A tensor on the same memory, which must outlive it. Throws `gshard::error` if this tensor has another element type or sharding.
  template <distributed_tensor Tensor>
  Tensor as() {
    check(dtype_of<typename Tensor::value_type>);
    return detail::tensor_access::typed<Tensor>(view(Tensor::layout_type::named));
  }

  /// "f32[64@data,512]"
  std::string text() const;

 private:
  friend detail::tensor_access;
  explicit runtime_tensor(detail::untyped_result&& t) : untyped_tensor(std::move(t)) {}

  void check(dtype wanted) const;
  detail::untyped_result view(const named_sharding& spec);
};

#if GSHARD_HAS_BODIES

namespace detail {
/// "f32[64@data,512]"
inline std::string text_of_tensor(const untyped_tensor& t) {
  bound_value v;
  v.type = t.type();
  v.extents.assign(t.extents().begin(), t.extents().end());
  v.layout = t.layout();
  return layout_text(v, t.cluster().mesh());
}
/// True if a tensor has these shards.
inline bool has_shards(const untyped_tensor& t, const sharding& layout, std::span<const kernel::placement> places) {
  bool same = t.layout().partial == layout.partial && t.local_shards() == places.size();
  for (std::size_t i = 0; same && i < places.size(); ++i)
    same = t.place(i).extent == places[i].extent && t.place(i).offset == places[i].offset;
  return same;
}
}  // namespace detail

GSHARD_INLINE std::string runtime_tensor::text() const { return detail::text_of_tensor(*this); }

GSHARD_INLINE void runtime_tensor::check(dtype wanted) const {
  if (wanted != type())
    throw error("tensor: the elements of " + text() + " are " + std::string(cpp_name(type())) + ", not " + std::string(cpp_name(wanted)));
}

GSHARD_INLINE detail::untyped_result runtime_tensor::view(const named_sharding& spec) {
  std::vector<std::byte*> shards;
  for (std::size_t i = 0; i < local_shards(); ++i) shards.push_back(shard(i));
  if (std::size_t(spec.rank) != extents().size())
    throw error("tensor: " + text() + " is used as a tensor of " + std::to_string(spec.rank) + " dims");
  std::vector<kernel::placement> places;
  for (std::size_t i = 0; i < local_shards(); ++i) places.push_back(place(i));
  detail::untyped_result same(cluster(), {extents().begin(), extents().end()}, spec, type(), shards);
  if (!detail::has_shards(same, layout(), places)) throw error("tensor: " + text() + " is used as " + detail::text_of_tensor(same));
  detail::tensor_access::set_origin(same, detail::tensor_access::origin(*this));
  return same;
}

#endif

}}  // namespace gshard::v0

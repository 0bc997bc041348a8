// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Tensors from the blocks of an application's own decomposition, and back.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/core/base/reason.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/tensor/block_exchange.hpp>
#include <gshard/exec/tensor/cluster.hpp>
#include <gshard/exec/tensor/local_block.hpp>
#include <gshard/exec/tensor/tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

/// The messages between an application's decomposition of an array and a tensor `tensor<T, Spec>`. Make it once and use it in every step;
/// from_local_blocks and to_local_blocks make one for each call.
///
/// Each process passes any number of blocks, of any extents, including empty ones. Together the blocks of all processes must have every
/// element of the array exactly once. The blocks' memory must stay valid, at the same addresses.
/// Communicates: the places of the blocks.
/// Compile time: that the spec is not a partial sum.
/// Throws `gshard::error`, on every process: if a block is not inside the array; if the blocks do not tile the array; if the processes
/// pass another array; if the cluster lacks an axis of the spec.
/// @see from_local_blocks
template <class T, class Spec>
class local_blocks {
 public:
  using value_type = std::remove_const_t<T>;
  using tensor_type = tensor<value_type, Spec>;
  static_assert(!tensor_type::is_partial, "gshard: local blocks of a partial sum; reshard it first");

  local_blocks(const any_cluster& on, std::vector<std::int64_t> extents, const std::vector<local_block<T>>& blocks)
      : on_(on), extents_(std::move(extents)), exchange_(connect(blocks)) {}

  /// The tensor of the blocks' elements. If a block is the complete shard of its device, row-major and contiguous, the shard is the block
  /// itself: nothing is copied, and the tensor keeps using the block's memory. Blocks of const elements are always copied.
  /// Collective. Communicates: to each device the elements of its shard that are not in its blocks.
  /// Throws `gshard::error`, on every process, if one has too little memory.
  tensor_type to_tensor() {
    std::vector<value_type*> in_place(on_.devices().size());
    if constexpr (!std::is_const_v<T>)
      for (std::size_t i = 0; i < in_place.size(); ++i) in_place[i] = reinterpret_cast<T*>(exchange_.shard_in_place(i));
    std::optional<tensor_type> t;
    const process_error problem = detail::problem_of([&] { t.emplace(on_, extents_, in_place); });
    exchange_.move(true, t ? shards_of(*t) : std::vector<std::byte*>(), problem);
    return std::move(*t);
  }
  /// Copies the elements of the blocks to the shards of `t`. Collective. Communicates as to_tensor does.
  /// Throws `gshard::error`, on every process, if `t` has other extents or belongs to another cluster.
  void copy_to(tensor_type& t) { exchange_.move(true, shards_of(t), problem_of(t)); }
  /// Copies the elements of `t` to the blocks. Collective. Communicates: to each device the elements of its blocks that are not in its
  /// shard. Throws as copy_to does.
  void copy_from(const tensor_type& t)
    requires(!std::is_const_v<T>)
  {
    exchange_.move(false, shards_of(t), problem_of(t));
  }

  /// The bytes that a device of this process receives in one call.
  std::int64_t bytes_to_shard(std::size_t device = 0) const { return exchange_.bytes_received(true, device); }
  std::int64_t bytes_to_blocks(std::size_t device = 0) const { return exchange_.bytes_received(false, device); }

 private:
  any_cluster on_;
  std::vector<std::int64_t> extents_;
  detail::block_exchange exchange_;

  detail::block_exchange connect(const std::vector<local_block<T>>& blocks) const {
    std::vector<detail::placed_block> mine;
    process_error problem = detail::problem_of([&] {
      for (const local_block<T>& b : blocks) {
        auto* const data = reinterpret_cast<std::byte*>(const_cast<value_type*>(b.data));
        mine.push_back(detail::place_block(mine.size(), data, b.device, b.offset, b.extent, b.stride, extents_, on_));
      }
    });
    return {on_, extents_, Spec::named, sizeof(T), cpp_name(dtype_of<value_type>), std::move(mine), std::move(problem)};
  }
  process_error problem_of(const tensor_type& t) const {
    if (!t.cluster().same_as(on_)) return "local blocks: the tensor belongs to another cluster";
    if (!std::ranges::equal(t.extents(), extents_))
      return "local blocks: the tensor has the extents " + detail::extents_text(t.extents()) + ", the array of the blocks " +
             detail::extents_text(extents_);
    return {};
  }
  static std::vector<std::byte*> shards_of(const tensor_type& t) {
    std::vector<std::byte*> all;
    for (std::size_t i = 0; i < t.local_shards(); ++i)
      all.push_back(reinterpret_cast<std::byte*>(const_cast<value_type*>(t.local_shard(i).data)));
    return all;
  }
};

/// from_local_blocks<P<"rows", none>>(cluster, {n, m}, blocks): a tensor from blocks of an application's decomposition. `blocks`: a
/// std::vector of local_block, or a list, {gs::local_block(matrix, {row, 0})}.
/// Shapes: the extents of the array.
/// Communicates: the places of the blocks, then to each device the elements of its shard that are not in its blocks.
/// Compile time: that the spec is not a partial sum.
/// Throws: `gshard::error` as the constructor of local_blocks does.
/// @see local_blocks::to_tensor, for when the tensor uses the memory of the blocks
template <class Spec, class T>
tensor<std::remove_const_t<T>, Spec> from_local_blocks(const any_cluster& on, std::vector<std::int64_t> extents,
                                                       const std::vector<local_block<T>>& blocks) {
  return local_blocks<T, Spec>(on, std::move(extents), blocks).to_tensor();
}
template <class Spec, class T>
tensor<std::remove_const_t<T>, Spec> from_local_blocks(const any_cluster& on, std::vector<std::int64_t> extents,
                                                       std::initializer_list<local_block<T>> blocks) {
  return from_local_blocks<Spec>(on, std::move(extents), std::vector<local_block<T>>(blocks));
}

/// to_local_blocks(t, blocks): copies a tensor to blocks of an application's decomposition.
/// Communicates: the places of the blocks, then to each device the elements of its blocks that are not in its shard.
/// Compile time: that the tensor is not a partial sum; that the blocks have its element type and are not const.
/// Throws: `gshard::error` as the constructor of local_blocks does.
/// @see from_local_blocks
template <class T, class Spec, class U>
void to_local_blocks(const tensor<T, Spec>& t, const std::vector<local_block<U>>& blocks) {
  static_assert(holds<std::is_same_v<U, T>, expected_type<T>, actual_type<U>>,
                "gshard: to_local_blocks writes to blocks that have the tensor's element type and are not const");
  if constexpr (std::is_same_v<U, T>)
    local_blocks<T, Spec>(t.cluster(), {t.extents().begin(), t.extents().end()}, blocks).copy_from(t);
}
template <class T, class Spec, class U>
void to_local_blocks(const tensor<T, Spec>& t, std::initializer_list<local_block<U>> blocks) {
  to_local_blocks(t, std::vector<local_block<U>>(blocks));
}

}}  // namespace gshard::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Extents, strides and placement of a shard in its global tensor, for kernels.

#include <gshard/core/base/packed_list.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace kernel {

/// Extents, offsets or strides (in elements) of up to `max_rank` dims, outermost first.
using index_array = std::array<std::int64_t, max_rank>;

/// The placement of a shard in its global tensor, for kernels whose values depend on the global index.
struct placement {
  int rank = 0;
  index_array extent{};  // of the shard
  index_array offset{};  // of the shard's first element in the global tensor
  index_array global{};  // extents of the global tensor
};

/// The placement of a tensor that is not sharded.
constexpr placement whole(int rank, const index_array& extent) {
  return {rank, extent, {}, extent};
}

constexpr std::int64_t element_count(int rank, const index_array& extent) {
  std::int64_t n = 1;
  for (int d = 0; d < rank; ++d) n *= extent[std::size_t(d)];
  return n;
}

constexpr index_array row_major_strides(int rank, const index_array& extent) {
  index_array stride{};
  std::int64_t n = 1;
  for (int d = rank; d-- > 0;) {
    stride[std::size_t(d)] = n;
    n *= extent[std::size_t(d)];
  }
  return stride;
}

/// The offset of a block's first element in memory that has the placement `home` with these strides.
constexpr std::int64_t offset_of(const placement& block, const placement& home, const index_array& stride) {
  std::int64_t at = 0;
  for (std::size_t d = 0; d < std::size_t(home.rank); ++d) at += (block.offset[d] - home.offset[d]) * stride[d];
  return at;
}

/// True if the strides describe contiguous row-major memory. Dims of extent 1 may have any stride.
constexpr bool is_row_major(int rank, const index_array& extent, const index_array& stride) {
  const index_array row_major = row_major_strides(rank, extent);
  for (std::size_t d = 0; d < std::size_t(rank); ++d)
    if (extent[d] != 1 && stride[d] != row_major[d]) return false;
  return true;
}

/// Calls f(local, global, n) for the longest runs of n elements that are consecutive in the row-major shard and in the row-major global
/// tensor. `local` and `global` are the linear indices of the first element.
template <class F>
constexpr void for_each_run(const placement& p, F f) {
  if (element_count(p.rank, p.extent) == 0) return;
  int outer = p.rank;  // dims [outer, rank) form one run
  std::int64_t run = 1;
  while (outer > 0) {
    const auto d = std::size_t(--outer);
    run *= p.extent[d];
    if (p.extent[d] != p.global[d]) break;
  }
  const index_array stride = row_major_strides(p.rank, p.global);
  std::int64_t global = 0;
  for (std::size_t d = 0; d < std::size_t(p.rank); ++d) global += p.offset[d] * stride[d];

  index_array index{};
  for (std::int64_t local = 0;; local += run) {
    f(local, global, run);
    int d = outer;
    while (d-- > 0) {
      const auto i = std::size_t(d);
      global += stride[i];
      if (++index[i] < p.extent[i]) break;
      global -= stride[i] * p.extent[i];
      index[i] = 0;
    }
    if (d < 0) return;
  }
}

/// Calls f(global, local) for every element of a row-major shard, with its linear indices in the global tensor and in the shard.
template <class F>
constexpr void for_each_element(const placement& p, F f) {
  for_each_run(p, [&](std::int64_t local, std::int64_t global, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) f(std::size_t(global + i), std::size_t(local + i));
  });
}

}}}  // namespace gshard::v0::kernel

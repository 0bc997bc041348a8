// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Copies of elements as words of their size: rows by memcpy, tiles transposed in registers.

#include <gshard/exec/kernel/loops.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace gshard { inline namespace v0 { namespace kernel { namespace detail {

struct two_words {
  std::uint64_t low, high;
};
/// An integer with the bytes of an element; for 16 bytes, two integers.
template <std::size_t Bytes>
  requires(Bytes == 1 || Bytes == 2 || Bytes == 4 || Bytes == 8 || Bytes == 16)
using word_of_size =
    std::conditional_t<Bytes <= 2, std::conditional_t<Bytes == 1, std::uint8_t, std::uint16_t>,
                       std::conditional_t<Bytes == 4, std::uint32_t, std::conditional_t<Bytes == 8, std::uint64_t, two_words>>>;

// Words that may alias any type, so that one copy serves all element types. A std::complex<float> has 8 bytes and is aligned to 4.
template <class U>
struct [[gnu::may_alias, gnu::packed, gnu::aligned(sizeof(U) < 4 ? sizeof(U) : 4)]] word {
  U bits;
};
template <std::size_t Bytes>
using word_of_element = word<word_of_size<Bytes>>;

// A square tile with 16 (4-byte) or 8 (8-byte) elements a side, one row per vector register. It is transposed by exchanging off-diagonal
// blocks, the largest first.
template <class U>
struct transposer {
  static constexpr std::size_t side = 64 / sizeof(U);
  using row [[gnu::vector_size(64)]] = U;

  template <std::size_t Step, std::size_t... Lane>
  static void exchange(row& a, row& b, std::index_sequence<Lane...>) {
    const row low = __builtin_shufflevector(a, b, ((Lane & Step) == 0 ? Lane : Lane - Step + side)...);
    b = __builtin_shufflevector(a, b, ((Lane & Step) == 0 ? Lane + Step : Lane + side)...);
    a = low;
  }
  template <std::size_t Step>
  static void exchange_all(row (&tile)[side]) {
    for (std::size_t i = 0; i < side; ++i)
      if ((i & Step) == 0) exchange<Step>(tile[i], tile[i + Step], std::make_index_sequence<side>{});
    if constexpr (Step > 1) exchange_all<Step / 2>(tile);
  }
  static void tile(const word<U>* src, std::int64_t src_stride, word<U>* dst, std::int64_t dst_stride) {
    row r[side];
    for (std::size_t i = 0; i < side; ++i)
      std::memcpy(&r[i], src + std::int64_t(i) * src_stride, sizeof(row));
    exchange_all<side / 2>(r);
    for (std::size_t i = 0; i < side; ++i)
      std::memcpy(dst + std::int64_t(i) * dst_stride, &r[i], sizeof(row));
  }
};

/// True if tiles of these words are transposed in registers. Other words are transposed one by one.
template <class U>
inline constexpr bool has_tiles = sizeof(U) == 4 || sizeof(U) == 8;

template <class U>
void transpose_block(const word<U>* src, std::int64_t src_stride, word<U>* dst, std::int64_t dst_stride,
                     std::int64_t rows, std::int64_t cols) {
  const auto edge = [&](std::int64_t i0, std::int64_t i1, std::int64_t j0, std::int64_t j1) {
    for (std::int64_t i = i0; i < i1; ++i)
      for (std::int64_t j = j0; j < j1; ++j) dst[i * dst_stride + j] = src[j * src_stride + i];
  };
  if constexpr (has_tiles<U>) {
    constexpr auto side = std::int64_t(transposer<U>::side);
    const std::int64_t whole_rows = rows / side * side, whole_cols = cols / side * side;
    for (std::int64_t i = 0; i < whole_rows; i += side) {
      for (std::int64_t j = 0; j < whole_cols; j += side)
        transposer<U>::tile(src + j * src_stride + i, src_stride, dst + i * dst_stride + j, dst_stride);
      edge(i, i + side, whole_cols, cols);
    }
    edge(whole_rows, rows, 0, cols);
  } else {
    edge(0, rows, 0, cols);
  }
}

/// dst[i * dst_stride + j] = src[j * src_stride + i] for i < rows, j < cols.
template <class U>
void transpose(const word<U>* src, std::int64_t src_stride, word<U>* dst, std::int64_t dst_stride,
               std::int64_t rows, std::int64_t cols) {
  constexpr std::int64_t block = 64;  // limits the pages and cache lines in use on both sides
  parallel_rows((cols + block - 1) / block, block * rows, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t j = begin * block; j < std::min(end * block, cols); j += block)
      for (std::int64_t i = 0; i < rows; i += block)
        transpose_block(src + j * src_stride + i, src_stride, dst + i * dst_stride + j, dst_stride,
                        std::min(block, rows - i), std::min(block, cols - j));
  });
}

template <class U>
void copy_nest(const word<U>* src, word<U>* dst, loop_nest<2> nest) {
  const loop<2> inner = nest.take_innermost();
  if (inner.stride[0] == 1 && inner.stride[1] == 1) {
    nest.push(inner);
    parallel_nest<1>(nest, [=](loop_nest<2> part, const auto& first) {
      const std::size_t bytes = std::size_t(part.take_innermost().extent) * sizeof(U);
      for_each_offset(part, [=](const auto& at) { std::memcpy(dst + first[1] + at[1], src + first[0] + at[0], bytes); });
    });
    return;
  }
  if constexpr (sizeof(U) > 1)
    for (std::size_t i = 0; i < nest.count; ++i)
      if (inner.stride[1] == 1 && nest.at[i].stride[0] == 1) {
        const loop<2> row = nest.at[i];
        nest.erase(i);
        parallel_offsets(nest, row.extent * inner.extent, [=](const auto& at) {
          transpose(src + at[0], inner.stride[0], dst + at[1], row.stride[1], row.extent, inner.extent);
        });
        return;
      }
  parallel_offsets(nest, inner.extent, [=](const auto& at) {
    for (std::int64_t i = 0; i < inner.extent; ++i)
      dst[at[1] + i * inner.stride[1]] = src[at[0] + i * inner.stride[0]];
  });
}

// Elements of other sizes are rows of bytes.
inline loop_nest<2> as_bytes(loop_nest<2> nest, std::int64_t size) {
  for (std::size_t i = 0; i < nest.count; ++i)
    for (std::int64_t& s : nest.at[i].stride) s *= size;
  nest.push({size, {1, 1}});
  merge_loops(nest);
  sort_loops(nest, 1);
  return nest;
}

template <class U>
void copy_words(const std::byte* src, std::byte* dst, const loop_nest<2>& nest) {
  copy_nest(reinterpret_cast<const word<U>*>(src), reinterpret_cast<word<U>*>(dst), nest);
}

}}}}  // namespace gshard::v0::kernel::detail

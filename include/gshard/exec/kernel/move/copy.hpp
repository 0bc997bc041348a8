// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Copies and transposes n-dimensional blocks with strides.

#include <gshard/core/base/compiled.hpp>
#include <gshard/exec/kernel/view.hpp>

#include <cstddef>
#include <cstdint>

#if GSHARD_HAS_BODIES
#include <gshard/exec/kernel/loops.hpp>
#include <gshard/exec/kernel/move/copy_words.hpp>
#endif

namespace gshard { inline namespace v0 { namespace kernel {

/// dst[index] = src[index] over an n-dimensional block of `rank` dims. Strides count elements of `elem_size` bytes. Contiguous rows are
/// copied by memcpy. If source and destination have different contiguous dims, tiles are transposed. Elements of 2, 4, 8 and 16 bytes must
/// be aligned to their size or to 4 bytes. The blocks must not overlap.
void copy_block(const std::byte* src, const index_array& src_stride, std::byte* dst, const index_array& dst_stride,
                const index_array& extent, int rank, std::int64_t elem_size);

#if GSHARD_HAS_BODIES
GSHARD_INLINE void copy_block(const std::byte* src, const index_array& src_stride, std::byte* dst, const index_array& dst_stride,
                              const index_array& extent, int rank, std::int64_t elem_size) {
  if (element_count(rank, extent) == 0) return;
  detail::loop_nest<2> nest;
  for (std::size_t d = 0; d < std::size_t(rank); ++d) nest.push({extent[d], {src_stride[d], dst_stride[d]}});
  detail::merge_loops(nest);
  detail::sort_loops(nest, 1);
  switch (elem_size) {
    case 2: return detail::copy_words<detail::word_of_size<2>>(src, dst, nest);
    case 4: return detail::copy_words<detail::word_of_size<4>>(src, dst, nest);
    case 8: return detail::copy_words<detail::word_of_size<8>>(src, dst, nest);
    case 16: return detail::copy_words<detail::word_of_size<16>>(src, dst, nest);
    default: return detail::copy_words<detail::word_of_size<1>>(src, dst, detail::as_bytes(nest, elem_size));
  }
}
#endif

}}}  // namespace gshard::v0::kernel

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Applies a function elementwise to operands that may be broadcast: the kernel of map.

#include <gshard/ir/pointwise.hpp>
#include <gshard/kernel/loops.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace kernel {

namespace detail {
// Broadcast and strided operands are copied to unit stride, block by block. Therefore one loop of f serves all calls, and the compiler
// vectorizes it.
template <class T, class F>
void apply_row(const F& f, std::size_t operands, const T* const* in, const std::int64_t* stride, T* out, std::int64_t n) {
  constexpr std::int64_t most = 256;
  alignas(T) std::byte copies[pointwise::most_operands][std::size_t(most) * sizeof(T)];
  const auto copy_of = [&](std::size_t k) { return reinterpret_cast<T*>(copies[k]); };
  if (std::all_of(stride, stride + operands, [](std::int64_t s) { return s == 1; })) return f(in, out, n);
  for (std::size_t k = 0; k < operands; ++k)
    if (stride[k] == 0) std::fill_n(copy_of(k), std::min(n, most), *in[k]);
  for (std::int64_t begin = 0; begin < n; begin += most) {
    const std::int64_t count = std::min(most, n - begin);
    std::array<const T*, pointwise::most_operands> x{};
    for (std::size_t k = 0; k < operands; ++k) {
      x[k] = stride[k] == 1 ? in[k] + begin : copy_of(k);
      if (stride[k] == 0 || stride[k] == 1) continue;
      for (std::int64_t i = 0; i < count; ++i) copy_of(k)[i] = in[k][(begin + i) * stride[k]];
    }
    f(x.data(), out + begin, count);
  }
}
}  // namespace detail

/// out = f(in[0], ..., in[n_in - 1]) elementwise over the row-major result, for n_in <= 6. Each operand has strides over the dims of the
/// result, 0 where it is broadcast. Dims that are contiguous in all operands are merged, so that f gets the longest possible rows. `out`
/// may be an operand (in place) with the same strides.
/// F: a row_function<T>, or a callable of its signature.
template <class T, class F>
void apply_rows(const F& f, int n_in, const T* const* in, const index_array* in_stride, T* out,
                const index_array& extent, int rank) {
  constexpr std::size_t most = pointwise::most_operands;
  const auto operands = std::size_t(n_in);
  const index_array out_stride = row_major_strides(rank, extent);
  detail::loop_nest<most + 1> nest;
  for (std::size_t d = 0; d < std::size_t(rank); ++d) {
    detail::loop<most + 1> l{extent[d], {}};
    for (std::size_t o = 0; o < operands; ++o) l.stride[o] = in_stride[o][d];
    l.stride[most] = out_stride[d];
    nest.push(l);
  }
  if (nest.iterations() == 0) return;
  detail::merge_loops(nest);
  detail::sort_loops(nest, most);
  detail::parallel_nest<most>(nest, [&](detail::loop_nest<most + 1> part, const auto& first) {
    const auto row = part.take_innermost();
    detail::for_each_offset(part, [&](const auto& at) {
      std::array<const T*, most> x{};
      for (std::size_t o = 0; o < operands; ++o) x[o] = in[o] + first[o] + at[o];
      detail::apply_row(f, operands, x.data(), row.stride.data(), out + first[most] + at[most], row.extent);
    });
  });
}

}}}  // namespace gshard::v0::kernel

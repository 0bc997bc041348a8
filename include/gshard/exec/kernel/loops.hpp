// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Loop nests over operands with strides: merging and ordering loops, and running them on several threads.

#include <gshard/exec/kernel/threads.hpp>
#include <gshard/exec/kernel/view.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace kernel { namespace detail {

/// One loop over N operands, each with a stride (in elements; 0 if it does not depend on this loop).
template <std::size_t N>
struct loop {
  std::int64_t extent = 1;
  std::array<std::int64_t, N> stride{};
};

/// A nest of loops, outermost first.
template <std::size_t N>
struct loop_nest {
  static constexpr std::size_t most = 16;

  std::array<loop<N>, most> at{};
  std::size_t count = 0;

  constexpr void push(const loop<N>& l) { at[count++] = l; }
  constexpr void erase(std::size_t i) {
    for (--count; i < count; ++i) at[i] = at[i + 1];
  }
  /// Removes the innermost loop; a nest without loops has one iteration.
  constexpr loop<N> take_innermost() { return count == 0 ? loop<N>{} : at[--count]; }
  constexpr std::int64_t iterations() const {
    std::int64_t n = 1;
    for (std::size_t i = 0; i < count; ++i) n *= at[i].extent;
    return n;
  }
};

template <std::size_t N>
constexpr bool mergeable(const loop<N>& outer, const loop<N>& inner) {
  for (std::size_t o = 0; o < N; ++o)
    if (outer.stride[o] != inner.extent * inner.stride[o]) return false;
  return true;
}

template <std::size_t N>
constexpr bool merge_two(loop_nest<N>& nest) {
  for (std::size_t outer = 0; outer < nest.count; ++outer)
    for (std::size_t inner = 0; inner < nest.count; ++inner)
      if (outer != inner && mergeable(nest.at[outer], nest.at[inner])) {
        nest.at[inner].extent *= nest.at[outer].extent;
        nest.erase(outer);
        return true;
      }
  return false;
}

/// Drops loops of extent 1, and merges every two loops that are contiguous for all operands.
template <std::size_t N>
constexpr void merge_loops(loop_nest<N>& nest) {
  for (std::size_t i = nest.count; i-- > 0;)
    if (nest.at[i].extent == 1) nest.erase(i);
  while (merge_two(nest)) {
  }
}

/// Orders the loops by falling stride of one operand.
template <std::size_t N>
constexpr void sort_loops(loop_nest<N>& nest, std::size_t operand) {
  for (std::size_t i = 1; i < nest.count; ++i)
    for (std::size_t j = i; j > 0 && nest.at[j - 1].stride[operand] < nest.at[j].stride[operand]; --j) {
      const loop<N> l = nest.at[j];
      nest.at[j] = nest.at[j - 1];
      nest.at[j - 1] = l;
    }
}

/// Calls f(offsets) for iterations [begin, end) of the nest, in order.
template <std::size_t N, class F>
void for_each_offset(const loop_nest<N>& nest, std::int64_t begin, std::int64_t end, F f) {
  if (begin >= end) return;
  std::array<std::int64_t, N> at{};
  std::array<std::int64_t, loop_nest<N>::most> index{};
  std::int64_t rest = begin;
  for (std::size_t d = nest.count; d-- > 0; rest /= nest.at[d].extent) {
    index[d] = rest % nest.at[d].extent;
    for (std::size_t o = 0; o < N; ++o) at[o] += index[d] * nest.at[d].stride[o];
  }
  for (std::int64_t i = begin;;) {
    f(at);
    if (++i == end) return;
    std::size_t d = nest.count;
    for (; d-- > 0;) {
      const loop<N>& l = nest.at[d];
      for (std::size_t o = 0; o < N; ++o) at[o] += l.stride[o];
      if (++index[d] < l.extent) break;
      for (std::size_t o = 0; o < N; ++o) at[o] -= l.extent * l.stride[o];
      index[d] = 0;
    }
  }
}

/// Calls f(offsets) for every iteration of the nest, in order.
template <std::size_t N, class F>
void for_each_offset(const loop_nest<N>& nest, F f) {
  for_each_offset(nest, 0, nest.iterations(), f);
}

/// The same on several threads. One call of f costs as much as a row of `cols` elements.
template <std::size_t N, class F>
void parallel_offsets(const loop_nest<N>& nest, std::int64_t cols, F f) {
  parallel_rows(nest.iterations(), cols, [&](std::int64_t begin, std::int64_t end) { for_each_offset(nest, begin, end, f); });
}

/// Runs the nest by calls of f(part of the nest, offsets of its first iteration). If operand O moves in the outermost loop, threads share
/// that loop, and each part of O is written by one thread.
template <std::size_t O, std::size_t N, class F>
void parallel_nest(const loop_nest<N>& nest, const F& f) {
  if (nest.count == 0 || nest.at[0].stride[O] == 0) return f(nest, std::array<std::int64_t, N>{});
  const loop<N>& outer = nest.at[0];
  if (outer.extent == 0) return;
  parallel_rows(outer.extent, nest.iterations() / outer.extent, [&](std::int64_t begin, std::int64_t end) {
    loop_nest<N> part = nest;
    part.at[0].extent = end - begin;
    std::array<std::int64_t, N> first{};
    for (std::size_t o = 0; o < N; ++o) first[o] = begin * outer.stride[o];
    f(part, first);
  });
}

}}}}  // namespace gshard::v0::kernel::detail

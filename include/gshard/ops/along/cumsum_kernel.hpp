// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Kernels of running sums.

#include <gshard/exec/bind/local_step.hpp>
#include <gshard/exec/kernel/threads.hpp>
#include <gshard/ops/along/cumsum.hpp>

#include <algorithm>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace kernel {

/// out[o, j, i] = carry[o, i] + sum of x[o, k, i] over the k <= j (exclusive: k < j; reverse: k >= j, k > j), added one after another. x,
/// out: [outer, n, inner], not overlapping. carry: [outer, inner], the sums of the previous shards, or null for zeros.
template <class T>
void cumsum(const T* x, const T* carry, T* out, std::int64_t outer, std::int64_t n, std::int64_t inner, bool exclusive, bool reverse) {
  const std::int64_t step = reverse ? -inner : inner, first = reverse ? (n - 1) * inner : 0;
  const auto columns = [=](std::int64_t o, std::int64_t i) {
    T sum = carry ? carry[o * inner + i] : T(0);
    std::int64_t at = o * n * inner + first + i;
    for (std::int64_t j = 0; j < n; ++j, at += step) {
      const T before = sum;
      sum += x[at];
      out[at] = exclusive ? before : sum;
    }
  };
  const auto rows = [=](std::int64_t o) {
    const T* before = carry ? carry + o * inner : nullptr;
    for (std::int64_t j = 0; j < n; ++j) {
      const std::int64_t at = o * n * inner + first + j * step;
      const T* term = exclusive ? (j == 0 ? nullptr : x + at - step) : x + at;
      for (std::int64_t i = 0; i < inner; ++i) out[at + i] = (before ? before[i] : T(0)) + (term ? term[i] : T(0));
      before = out + at;
    }
  };
  parallel_rows(outer, n * inner, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o)
      if (inner < 4)  // too short for a row
        for (std::int64_t i = 0; i < inner; ++i) columns(o, i);
      else rows(o);
  });
}

/// out[o, i] = sum of x[o, j, i] over j, added one after another. The carry of the next shard starts with this sum.
template <class T>
void block_sum(const T* x, T* out, std::int64_t outer, std::int64_t n, std::int64_t inner) {
  parallel_rows(outer, n * inner, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o) {
      T* const sum = out + o * inner;
      std::fill_n(sum, inner, T(0));
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = 0; i < inner; ++i) sum[i] += x[(o * n + j) * inner + i];
    }
  });
}

}}}  // namespace gshard::v0::kernel

namespace gshard { inline namespace v0 { namespace detail {

template <class T>
action bind(kernel_of<op::cumsum>, const local_step<T>& step) {
  return [x = step.in(0), carry = step.in_or_null(1), y = step.out(), l = step.in_line(0),
          a = own<cumsum_attributes>(step.n)](const run_context&) {
    kernel::cumsum<T>(x, carry, y, l.outer, l.n, l.inner, a.exclusive, a.reverse);
  };
}

template <class T>
action bind(kernel_of<op::block_sum>, const local_step<T>& step) {
  return [x = step.in(0), y = step.out(), l = step.in_line(0)](const run_context&) {
    kernel::block_sum<T>(x, y, l.outer, l.n, l.inner);
  };
}

}}}  // namespace gshard::v0::detail

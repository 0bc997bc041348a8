// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Kernels of sort, top_k and their gradient.

#include <gshard/exec/bind/local_step.hpp>
#include <gshard/exec/kernel/threads.hpp>
#include <gshard/exec/reduce/combine.hpp>
#include <gshard/ops/along/sort.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 { namespace kernel {

namespace detail {

template <class T>
struct ranked {
  T value;
  std::int32_t id;
};

// NaN is larger than all other values; with NanFirst it also comes first among the smallest. Equal values are ordered by rising id. Padding
// of a short block comes last.
template <bool Largest, bool NanFirst, class T>
bool comes_before(const ranked<T>& a, const ranked<T>& b) {
  constexpr auto filling = std::numeric_limits<std::int32_t>::max();
  if ((a.id == filling) != (b.id == filling)) return b.id == filling;
  const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
  if (a_nan != b_nan) return a_nan == NanFirst;
  if (a.value == b.value || a_nan) return a.id < b.id;
  return Largest ? a.value > b.value : a.value < b.value;
}

template <bool Largest, bool NanFirst, class T>
void top_k(const T* values, const std::int32_t* ids, std::int64_t first_id, T* out_values, std::int32_t* out_ids, std::int64_t outer,
           std::int64_t n, std::int64_t inner, std::int64_t k) {
  constexpr T worst = Largest ? gshard::detail::lowest<T> : gshard::detail::highest<T>;
  constexpr ranked<T> nothing{worst, std::numeric_limits<std::int32_t>::max()};
  parallel_rows(outer * inner, n, [&](std::int64_t begin, std::int64_t end) {
    thread_local std::vector<ranked<T>> column;
    column.resize(std::size_t(n));
    for (std::int64_t c = begin; c < end; ++c) {
      const std::int64_t o = c / inner, i = c % inner;
      const auto element = [&](std::int64_t j) {
        const std::int64_t at = (o * n + j) * inner + i;
        return ranked<T>{values[at], ids ? ids[at] : std::int32_t(first_id + j)};
      };
      if (k == 1) {
        ranked<T> best = n > 0 ? element(0) : nothing;
        for (std::int64_t j = 1; j < n; ++j)
          if (const ranked<T> next = element(j); comes_before<Largest, NanFirst>(next, best)) best = next;
        out_values[c] = best.value;
        out_ids[c] = best.id;
        continue;
      }
      for (std::int64_t j = 0; j < n; ++j) column[std::size_t(j)] = element(j);
      const auto first = column.begin(), last = first + std::min(n, k);
      if (last != column.end()) std::nth_element(first, last, column.end(), comes_before<Largest, NanFirst, T>);
      std::sort(first, last, comes_before<Largest, NanFirst, T>);
      for (std::int64_t j = 0; j < k; ++j) {
        const ranked<T>& best = j < n ? column[std::size_t(j)] : nothing;
        out_values[(o * k + j) * inner + i] = best.value;
        out_ids[(o * k + j) * inner + i] = best.id;
      }
    }
  });
}

}  // namespace detail

/// out_values[o, :, i] = the k largest (or smallest) of values[o, :, i], the best first. out_ids[o, :, i] = their ids: ids[o, j, i], or
/// first_id + j if ids is null. Equal values are ordered by rising id. NaN is larger than all other values; with `nan_first` it also comes
/// first among the smallest. If n < k, the rest is padded with the worst value, -infinity (or +infinity), and the largest int32 as id. k =
/// n sorts. values, ids: [outer, n, inner], results: [outer, k, inner].
template <class T>
void top_k(const T* values, const std::int32_t* ids, std::int64_t first_id, T* out_values, std::int32_t* out_ids, std::int64_t outer,
           std::int64_t n, std::int64_t inner, std::int64_t k, bool largest, bool nan_first = false) {
  if (largest) detail::top_k<true, true>(values, ids, first_id, out_values, out_ids, outer, n, inner, k);
  else if (nan_first) detail::top_k<false, true>(values, ids, first_id, out_values, out_ids, outer, n, inner, k);
  else detail::top_k<false, false>(values, ids, first_id, out_values, out_ids, outer, n, inner, k);
}

/// dx[o, r, i] = sum of dy[o, j, i] over the j with ids[o, j, i] - first == r: the gradient of top_k and sort. Ids outside [first, first +
/// n) belong to other shards. ids, dy: [outer, k, inner], dx: [outer, n, inner].
template <class T>
void scatter_along(const std::int32_t* ids, const T* dy, T* dx, std::int64_t outer, std::int64_t k, std::int64_t inner, std::int64_t first,
                   std::int64_t n) {
  parallel_rows(outer, std::max(n, k) * inner, [&](std::int64_t begin, std::int64_t end) {
    std::fill_n(dx + begin * n * inner, (end - begin) * n * inner, T(0));
    for (std::int64_t o = begin; o < end; ++o)
      for (std::int64_t j = 0; j < k; ++j)
        for (std::int64_t i = 0; i < inner; ++i) {
          const std::int64_t at = (o * k + j) * inner + i, row = ids[at] - first;
          if (row >= 0 && row < n) dx[(o * n + row) * inner + i] += dy[at];
        }
  });
}

}}}  // namespace gshard::v0::kernel

namespace gshard { inline namespace v0 { namespace detail {

template <class T>
action bind(kernel_of<op::top_k>, const local_step<T>& step) {
  const auto a = own<sort_attributes>(step.n);
  const auto l = step.in_line(0);
  check_indices("sort or top_k", l.whole);
  if (a.count > l.whole) throw error("top_k: " + std::to_string(a.count) + " of " + std::to_string(l.whole) + " elements are asked for");
  return [x = step.in(0), ids = step.n.inputs > 1 ? step.ids(1) : nullptr, y = step.out(0), y_ids = step.out_ids(1), l,
          k = step.out_line(0).n, descending = a.descending, nan_first = a.nan_first](const run_context&) {
    kernel::top_k<T>(x, ids, l.first, y, y_ids, l.outer, l.n, l.inner, k, descending, nan_first);
  };
}
template <class T>
action bind(kernel_of<op::sort>, const local_step<T>& step) {
  return bind(kernel_of<op::top_k>{}, step);
}

template <class T>
action bind(kernel_of<op::scatter_along>, const local_step<T>& step) {
  return [ids = step.ids(0), dy = step.in(1), y = step.out(), from = step.in_line(0), to = step.out_line()](const run_context&) {
    kernel::scatter_along<T>(ids, dy, y, to.outer, from.n, to.inner, to.first, to.n);
  };
}

}}}  // namespace gshard::v0::detail

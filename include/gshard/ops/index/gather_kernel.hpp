// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Kernels of gather and scatter_add.

#include <gshard/exec/bind/local_step.hpp>
#include <gshard/exec/kernel/threads.hpp>
#include <gshard/exec/kernel/vector.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/ops/index/gather.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

namespace gshard { inline namespace v0 { namespace kernel {

/// The local rows of a table [outer, total, inner]: `here` contiguous rows, from row `first` on.
struct row_range {
  std::int64_t first = 0, here = 0, total = 0;
};

namespace detail {

/// For i in [begin, end) with the id ids[i % count]: calls f(i, row) if the id's row is local, else g(i). `row` counts the local rows of
/// all outer tables.
template <class F, class G>
void for_each_id(const char* operation, const std::int32_t* ids, std::int64_t begin, std::int64_t end, std::int64_t count,
                 const row_range& rows, F f, G g) {
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t id = ids[i % count], row = id - rows.first;
    if (id < 0 || id >= rows.total)
      throw error(operation + (": id " + std::to_string(id)) + " at position " + std::to_string(i % count) + " is outside a table of " +
                  std::to_string(rows.total) + " rows");
    if (row >= 0 && row < rows.here) f(i, i / count * rows.here + row);
    else g(i);
  }
}

}  // namespace detail

/// out[o, j, :] = x[o, ids[j] - rows.first, :], or zeros if that row is not local. x: [outer, rows.here, inner], ids: [count], out: [outer,
/// count, inner]. Throws gshard::error with the position and the id if an id is outside [0, rows.total).
template <class T>
void gather_along(const T* x, const std::int32_t* ids, T* out, std::int64_t outer, const row_range& rows, std::int64_t inner,
                  std::int64_t count) {
  parallel_rows(outer * count, inner, [=](std::int64_t begin, std::int64_t end) {
    detail::for_each_id(
        "gather", ids, begin, end, count, rows,
        [=](std::int64_t i, std::int64_t row) { std::copy_n(x + row * inner, inner, out + i * inner); },
        [=](std::int64_t i) { std::fill_n(out + i * inner, inner, T{}); });
  });
}

/// dx[o, r, :] = sum of dy[o, j, :] over the j with ids[j] - rows.first == r, added in the order of j. The transpose of gather_along, with
/// the same shapes. Throws as gather_along does.
template <class T>
void scatter_add_along(const std::int32_t* ids, const T* dy, T* dx, std::int64_t outer, const row_range& rows, std::int64_t inner,
                       std::int64_t count) {
  parallel_rows(outer * rows.here, inner, [=](std::int64_t begin, std::int64_t end) {
    std::fill_n(dx + begin * inner, (end - begin) * inner, T(0));
  });
  // Each thread adds some columns of all rows.
  const std::int64_t step = detail::lanes<T>;
  parallel_rows((inner + step - 1) / step, step * outer * count, [=](std::int64_t begin, std::int64_t end) {
    detail::for_each_id(
        "scatter_add", ids, 0, outer * count, count, rows,
        [=, first = begin * step, last = std::min(end * step, inner)](std::int64_t i, std::int64_t row) {
          const T* from = dy + i * inner;
          T* to = dx + row * inner;
          for (std::int64_t c = first; c < last; ++c) to[c] += from[c];
        },
        [](std::int64_t) {});
  });
}

}}}  // namespace gshard::v0::kernel

namespace gshard { inline namespace v0 { namespace detail {

/// The product of the batch dims of the shard of ids.
template <class T>
std::int64_t batch_of_ids(const local_step<T>& step, int ids) {
  std::int64_t batch = 1;
  for (int d = 0; d < own<gather_attributes>(step.n).batch; ++d) batch *= step.in_value(ids).extent(step.device, d);
  return batch;
}

template <class T>
action bind(kernel_of<op::gather>, const local_step<T>& step) {
  const std::int64_t batch = batch_of_ids(step, 1);
  if (batch == 0) return {};
  return [x = step.in(0), ids = step.ids(1), y = step.out(), l = step.in_line(0), batch, outer = step.in_line(0).outer / batch,
          count = step.in_elements(1) / batch](const run_context&) {
    for (std::int64_t b = 0; b < batch; ++b)
      kernel::gather_along<T>(x + b * outer * l.n * l.inner, ids + b * count, y + b * outer * count * l.inner, outer,
                              {l.first, l.n, l.whole}, l.inner, count);
  };
}

template <class T>
action bind(kernel_of<op::scatter_add>, const local_step<T>& step) {
  const std::int64_t batch = batch_of_ids(step, 0);
  if (batch == 0) return {};
  return [ids = step.ids(0), dy = step.in(1), y = step.out(), l = step.out_line(), batch, outer = step.out_line().outer / batch,
          count = step.in_elements(0) / batch](const run_context&) {
    for (std::int64_t b = 0; b < batch; ++b)
      kernel::scatter_add_along<T>(ids + b * count, dy + b * outer * count * l.inner, y + b * outer * l.n * l.inner, outer,
                                   {l.first, l.n, l.whole}, l.inner, count);
  };
}

}}}  // namespace gshard::v0::detail

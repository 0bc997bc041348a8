// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/comm/error.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

namespace gshard { inline namespace v0 { namespace kernel {

/// The rows of a table [outer, total, inner], of which those from `first` on are here: `here` many, contiguous.
struct row_range {
  std::int64_t first = 0, here = 0, total = 0;
};

namespace detail {

/// Calls f(o, j, row) where id j is that of a row that is here, and g(o, j) where it is not.
template <class F, class G>
void for_each_id(const char* operation, const std::int32_t* ids, std::int64_t outer, std::int64_t count, const row_range& rows, F f, G g) {
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t j = 0; j < count; ++j) {
      const std::int64_t id = ids[j], row = id - rows.first;
      if (id < 0 || id >= rows.total)
        throw error(operation + (": id " + std::to_string(id)) + " at position " + std::to_string(j) + " is outside a table of " +
                    std::to_string(rows.total) + " rows");
      if (row >= 0 && row < rows.here) f(o, j, row);
      else g(o, j);
    }
}

}  // namespace detail

/// out[o, j, :] = x[o, ids[j] - rows.first, :], or zeros where that row is not here. x: [outer, rows.here, inner], ids: [count], out:
/// [outer, count, inner]. Throws gshard::error naming the position and the id that is outside [0, rows.total).
template <class T>
void gather_along(const T* x, const std::int32_t* ids, T* out, std::int64_t outer, const row_range& rows, std::int64_t inner,
                  std::int64_t count) {
  detail::for_each_id(
      "gather", ids, outer, count, rows,
      [=](std::int64_t o, std::int64_t j, std::int64_t row) {
        std::copy_n(x + (o * rows.here + row) * inner, inner, out + (o * count + j) * inner);
      },
      [=](std::int64_t o, std::int64_t j) { std::fill_n(out + (o * count + j) * inner, inner, T(0)); });
}

/// dx[o, r, :] = sum of dy[o, j, :] over the j with ids[j] - rows.first == r, added in the order of j; the transpose of gather_along,
/// with the same shapes. Throws as that does.
template <class T>
void scatter_add_along(const std::int32_t* ids, const T* dy, T* dx, std::int64_t outer, const row_range& rows, std::int64_t inner,
                       std::int64_t count) {
  std::fill_n(dx, outer * rows.here * inner, T(0));
  detail::for_each_id(
      "scatter_add", ids, outer, count, rows,
      [=](std::int64_t o, std::int64_t j, std::int64_t row) {
        const T* from = dy + (o * count + j) * inner;
        T* to = dx + (o * rows.here + row) * inner;
        for (std::int64_t i = 0; i < inner; ++i) to[i] += from[i];
      },
      [](std::int64_t, std::int64_t) {});
}

}}}  // namespace gshard::v0::kernel

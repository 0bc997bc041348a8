// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/comm/error.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

namespace gshard { inline namespace v0 { namespace kernel {

namespace detail {

inline void check_id(const char* operation, std::int32_t id, std::int64_t position, std::int64_t vocab) {
  if (id < 0 || id >= vocab)
    throw error(operation + (": id " + std::to_string(id)) + " at position " + std::to_string(position) +
                " is outside a table of " + std::to_string(vocab) + " rows");
}

}  // namespace detail

/// out[i, :] = table[ids[i], :] for i < n. Throws gshard::error naming the position and the id that is out of
/// range.
template <class T>
void gather_rows(const T* table, const std::int32_t* ids, T* out, std::int64_t n, std::int64_t cols,
                 std::int64_t vocab) {
  for (std::int64_t i = 0; i < n; ++i) {
    detail::check_id("gather_rows", ids[i], i, vocab);
    std::copy_n(table + ids[i] * cols, cols, out + i * cols);
  }
}

/// dtable[v, :] = sum of dy[i, :] over the i with ids[i] == v, added in the order of i; the transpose of
/// gather_rows.
template <class T>
void scatter_add_rows(const std::int32_t* ids, const T* dy, T* dtable, std::int64_t n, std::int64_t cols,
                      std::int64_t vocab) {
  std::fill_n(dtable, vocab * cols, T(0));
  for (std::int64_t i = 0; i < n; ++i, dy += cols) {
    detail::check_id("scatter_add_rows", ids[i], i, vocab);
    T* row = dtable + ids[i] * cols;
    for (std::int64_t j = 0; j < cols; ++j) row[j] += dy[j];
  }
}

}}}  // namespace gshard::v0::kernel

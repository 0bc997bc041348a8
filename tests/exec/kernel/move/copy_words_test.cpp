// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/kernel/move/copy_words.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace kernel = gshard::kernel;

namespace {

/// Compares the transposition of [rows, columns] words with its definition.
template <class U>
bool transposes(std::int64_t rows, std::int64_t columns) {
  std::vector<U> from(std::size_t(rows * columns)), to(from.size());
  std::iota(from.begin(), from.end(), U{1});
  kernel::detail::loop_nest<2> nest;
  nest.push({rows, {columns, 1}});
  nest.push({columns, {1, rows}});
  kernel::detail::copy_words<U>(reinterpret_cast<const std::byte*>(from.data()), reinterpret_cast<std::byte*>(to.data()), nest);
  bool same = true;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) same = same && to[std::size_t(j * rows + i)] == from[std::size_t(i * columns + j)];
  return same;
}

}  // namespace

TEST_CASE("copy_words: whole tiles, edges of tiles, and words without tiles are transposed") {
  for (const std::int64_t rows : {1, 8, 16, 17, 67})
    for (const std::int64_t columns : {1, 16, 31, 70}) {
      CAPTURE(rows);
      CAPTURE(columns);
      CHECK(transposes<std::uint8_t>(rows, columns));
      CHECK(transposes<std::uint16_t>(rows, columns));
      CHECK(transposes<std::uint32_t>(rows, columns));
      CHECK(transposes<std::uint64_t>(rows, columns));
    }
}

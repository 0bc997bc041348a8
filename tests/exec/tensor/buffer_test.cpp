// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/tensor/buffer.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <utility>

namespace gs = gshard;

TEST_CASE("buffers are aligned, can be empty, and move") {
  for (const std::int64_t bytes : {0, 1, 63, 64, 1000}) {
    gs::buffer b(bytes);
    CHECK(b.size() == bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(b.data()) % gs::buffer::alignment == 0);
    std::memset(b.data(), 7, std::size_t(bytes));
    std::byte* const where = b.data();
    const gs::buffer moved = std::move(b);
    CHECK(moved.data() == where);
    CHECK(moved.size() == bytes);
  }
  CHECK(gs::buffer().data() == nullptr);
  CHECK(gs::buffer().size() == 0);
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/io/array_info.hpp>

#include <doctest/doctest.h>

#include <cstdint>

namespace gs = gshard;

TEST_CASE("array_info: bytes and text") {
  using enum gs::array_type;
  CHECK(gs::array_info{"a", f32, {2, 3}}.bytes() == 24);
  CHECK(gs::array_info{"a", f64, {}}.bytes() == 8);
  CHECK(gs::array_info{"a", i32, {7, 0}}.bytes() == 0);
  CHECK(gs::array_info{"a", u8, {7}}.bytes() == 7);
  CHECK(gs::text_of({"a", f32, {2, 3}}) == "F32[2,3]");
  CHECK(gs::text_of({"a", i32, {}}) == "I32[]");
}

TEST_CASE("array_type: one for every element type but complex numbers, of its size") {
  for (const gs::dtype_traits& row : gs::dtype_table) {
    const gs::array_type t = gs::array_type_of(row.type);
    CHECK((t == gs::array_type::count_) == gs::is_complex(row.type));
    if (t != gs::array_type::count_) CHECK(gs::size_of(t) == row.size);
  }
  CHECK(gs::name_of(gs::array_type_of(gs::dtype::bf16)) == "BF16");
  for (int i = 0; i < int(gs::array_type::count_); ++i) CHECK(gs::array_types[i].type == gs::array_type(i));
}

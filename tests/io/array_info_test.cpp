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

TEST_CASE("array_type: one for every type of a tensor") {
  CHECK(gs::array_type_of(gs::dtype_of<float>) == gs::array_type::f32);
  CHECK(gs::array_type_of(gs::dtype_of<double>) == gs::array_type::f64);
  CHECK(gs::array_type_of(gs::dtype_of<std::int32_t>) == gs::array_type::i32);
  for (const gs::dtype t : {gs::dtype::f32, gs::dtype::f64, gs::dtype::i32})
    CHECK(gs::size_of(gs::array_type_of(t)) == gs::size_of(t));
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/file/constant.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("integers wrap, and real numbers are rounded, as their types hold them") {
  CHECK(on::wrapped(on::element::u8, 300) == 44);
  CHECK(on::wrapped(on::element::u8, -1) == 255);
  CHECK(on::wrapped(on::element::i8, 200) == -56);
  CHECK(on::wrapped(on::element::i16, 32768) == -32768);
  CHECK(on::wrapped(on::element::i32, std::int64_t(1) << 31) == -(std::int64_t(1) << 31));
  CHECK(on::wrapped(on::element::u32, -1) == 4294967295);
  CHECK(on::wrapped(on::element::boolean, 7) == 1);
  CHECK(on::rounded(on::element::f32, 0.1) == double(0.1f));
  CHECK(on::rounded(on::element::f16, 1.0001) == 1);
  CHECK(on::rounded(on::element::f64, 0.1) == 0.1);
}

TEST_CASE("a constant is the same after it was a tensor") {
  for (const on::element type :
       {on::element::f32, on::element::f64, on::element::f16, on::element::bf16, on::element::u8, on::element::i8, on::element::u16,
        on::element::i16, on::element::i32, on::element::i64, on::element::u32, on::element::boolean}) {
    const on::model_tensor t = numbers(type, {2}, {0, 1});
    CHECK(t.data.size() == 2 * std::size_t(on::traits(type).size));
    CHECK(on::tensor_of(on::constant_of(t), "").type == type);
    CHECK(on::constant_of(on::tensor_of(on::constant_of(t), "")) == on::constant_of(t));
  }
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/file/element.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("elements have carriers, and their numbers are those of ONNX") {
  CHECK(on::element_of(std::int64_t(1)) == on::element::f32);
  CHECK(on::element_of(std::int64_t(16)) == on::element::bf16);
  CHECK(on::element_of(std::int64_t(17)) == on::element::undefined);
  CHECK(on::element_of(std::int64_t(-1)) == on::element::undefined);
  CHECK(on::traits(on::element::u8).carrier == gshard::dtype::i32);
  CHECK(on::element_of(gshard::dtype::i64) == on::element::i64);
  CHECK(on::element_of(gshard::dtype::boolean) == on::element::boolean);
  CHECK(on::is_integer(on::element::u16));
  CHECK(!on::is_integer(on::element::boolean));
  CHECK(on::is_float(on::element::f16));
}

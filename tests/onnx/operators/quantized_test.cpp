// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/operators/quantized.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("quantized tensors") {
  const on::element u8 = on::element::u8;
  CHECK(wrong("QuantizeLinear", {f32({4}, {0, 2, 1000, -300}), f32({}, {2}), numbers(u8, {}, {128})},
              {numbers(u8, {4}, {128, 129, 255, 0})}) == "");
  CHECK(wrong("DequantizeLinear", {numbers(u8, {2}, {130, 126}), f32({}, {2}), numbers(u8, {}, {128})}, {f32({2}, {4, -4})}) == "");
  CHECK(wrong("MatMulInteger", {numbers(u8, {1, 2}, {11, 7}), numbers(u8, {2, 1}, {1, 4}), numbers(u8, {}, {12})}, {i32({1, 1}, {-21})}) ==
        "");
}

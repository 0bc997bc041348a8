// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/operators/convolution.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("convolutions and pooling") {
  const on::model_tensor x = f32({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}), ones = f32({1, 1, 2, 2}, {1, 1, 1, 1});
  CHECK(wrong("Conv", {x, ones}, {f32({1, 1, 2, 2}, {12, 16, 24, 28})}) == "");
  CHECK(wrong("Conv", {x, ones, f32({1}, {1})}, {f32({1, 1, 3, 3}, {13, 17, 10, 25, 29, 16, 16, 18, 10})}, {{"auto_pad", "SAME_UPPER"}}) ==
        "");
  CHECK(wrong("Conv", {f32({1, 2, 2}, {1, 2, 3, 4}), f32({2, 1, 1}, {10, 100})}, {f32({1, 2, 2}, {10, 20, 300, 400})}, {{"group", 2}}) ==
        "");
  CHECK(wrong("ConvTranspose", {f32({1, 1, 2}, {1, 2}), f32({1, 1, 2}, {3, 4})}, {f32({1, 1, 4}, {3, 4, 6, 8})},
              {{"strides", std::vector<std::int64_t>{2}}}) == "");
  CHECK(wrong("ConvTranspose", {f32({1, 1, 1, 2}, {1, 2}), f32({1, 1, 2, 2}, {1, 2, 3, 4})},
              {f32({1, 1, 2, 4}, {1, 2, 2, 4, 3, 4, 6, 8})}, {{"strides", std::vector<std::int64_t>{2, 2}}}) == "");
  CHECK(wrong("ConvTranspose", {f32({1, 1, 1, 1, 2}, {1, 2}), f32({1, 2, 2, 1, 1}, {1, 2, 3, 4})},
              {f32({1, 2, 2, 1, 2}, {1, 2, 2, 4, 3, 6, 4, 8})}, {{"strides", std::vector<std::int64_t>{2, 1, 1}}}) == "");
  CHECK(wrong("MaxPool", {x}, {f32({1, 1, 2, 2}, {5, 6, 8, 9}), i64({1, 1, 2, 2}, {4, 5, 7, 8})},
              {{"kernel_shape", std::vector<std::int64_t>{2, 2}}}) == "");
  CHECK(wrong("AveragePool", {x}, {f32({1, 1, 2, 2}, {1, 2.5, 5.5, 7})},
              {{"kernel_shape", std::vector<std::int64_t>{2, 2}},
               {"strides", std::vector<std::int64_t>{2, 2}},
               {"pads", std::vector<std::int64_t>{1, 1, 0, 0}}}) == "");
  CHECK(wrong("GlobalAveragePool", {x}, {f32({1, 1, 1, 1}, {5})}) == "");
  CHECK(refusal("Conv", {x, ones}, {{"auto_pad", "OTHER"}}) ==
        "the operator Conv (of \"y0\") has auto_pad = \"OTHER\", which gshard does not compute");
}

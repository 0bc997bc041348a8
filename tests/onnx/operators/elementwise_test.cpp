// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/operators/elementwise.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("functions and activations") {
  CHECK(wrong("Abs", {f32({3}, {-1, 2, -3})}, {f32({3}, {1, 2, 3})}) == "");
  CHECK(wrong("Relu", {f32({2, 2}, {-1, 2, -3, 4})}, {f32({2, 2}, {0, 2, 0, 4})}) == "");
  CHECK(wrong("LeakyRelu", {f32({2}, {-1, 2})}, {f32({2}, {-0.5, 2})}, {{"alpha", 0.5}}) == "");
  CHECK(wrong("Clip", {f32({3}, {-2, 0.5, 3}), f32({}, {-1}), f32({}, {1})}, {f32({3}, {-1, 0.5, 1})}) == "");
  CHECK(wrong("Sign", {i32({3}, {-2, 0, 9})}, {i32({3}, {-1, 0, 1})}) == "");
  CHECK(wrong("Sqrt", {numbers(on::element::f16, {2}, {4, 9})}, {numbers(on::element::f16, {2}, {2, 3})}) == "");
}

TEST_CASE("casts") {
  CHECK(wrong("Cast", {f32({3}, {-1.5, 0, 2.5})}, {i32({3}, {-1, 0, 2})}, {{"to", 6}}) == "");
  CHECK(wrong("Cast", {f32({3}, {-1.5, 0, 2.5})}, {truth({3}, {1, 0, 1})}, {{"to", 9}}) == "");
  CHECK(wrong("Cast", {i32({2}, {300, -1})}, {numbers(on::element::u8, {2}, {44, 255})}, {{"to", 2}}) == "");
  CHECK(refusal("Cast", {f32({1}, {1})}, {{"to", 8}}) ==
        "the operator Cast (of \"y0\") casts float to string, and gshard has no such tensors");
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/node/arithmetic.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("integers wrap and divide as in numpy") {
  CHECK(wrong("Add", {numbers(on::element::u8, {2}, {250, 3}), numbers(on::element::u8, {2}, {10, 4})},
              {numbers(on::element::u8, {2}, {4, 7})}) == "");
  CHECK(wrong("Mul", {numbers(on::element::i8, {2}, {100, -3}), numbers(on::element::i8, {2}, {2, 4})},
              {numbers(on::element::i8, {2}, {-56, -12})}) == "");
  CHECK(wrong("Div", {i32({4}, {7, -7, 7, -7}), i32({4}, {2, 2, -2, -2})}, {i32({4}, {3, -3, -3, 3})}) == "");
  CHECK(wrong("Mod", {i32({4}, {7, -7, 7, -7}), i32({4}, {3, 3, -3, -3})}, {i32({4}, {1, 2, -2, -1})}) == "");
  CHECK(wrong("Mod", {i32({4}, {7, -7, 7, -7}), i32({4}, {3, 3, -3, -3})}, {i32({4}, {1, -1, 1, -1})}, {{"fmod", 1}}) == "");
  CHECK(wrong("Min", {i64({3}, {1, 5, 3}), i64({3}, {4, 2, 3})}, {i64({3}, {1, 2, 3})}) == "");
}

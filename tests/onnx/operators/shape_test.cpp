// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/operators/shape.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("slices, pads, joins and splits") {
  const on::model_tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(wrong("Slice", {x, i64({1}, {-1}), i64({1}, {-100}), i64({1}, {1}), i64({1}, {-1})}, {f32({2, 3}, {3, 2, 1, 6, 5, 4})}) == "");
  CHECK(wrong("Slice", {x, i64({2}, {1, 0}), i64({2}, {2, 1000}), i64({2}, {0, 1}), i64({2}, {1, 2})}, {f32({1, 2}, {4, 6})}) == "");
  CHECK(wrong("Pad", {x, i64({4}, {0, 1, 0, 0}), f32({}, {9})}, {f32({2, 4}, {9, 1, 2, 3, 9, 4, 5, 6})}) == "");
  CHECK(wrong("Pad", {x, i64({4}, {0, 2, 0, 0})}, {f32({2, 5}, {3, 2, 1, 2, 3, 6, 5, 4, 5, 6})}, {{"mode", "reflect"}}) == "");
  CHECK(wrong("Pad", {x, i64({4}, {0, 1, 1, 0})}, {f32({3, 4}, {1, 1, 2, 3, 4, 4, 5, 6, 4, 4, 5, 6})}, {{"mode", "edge"}}) == "");
  CHECK(wrong("Concat", {x, x}, {f32({4, 3}, {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6})}, {{"axis", 0}}) == "");
  CHECK(wrong("Split", {x, i64({2}, {1, 2})}, {f32({2, 1}, {1, 4}), f32({2, 2}, {2, 3, 5, 6})}, {{"axis", 1}}) == "");
  CHECK(wrong("Tile", {x, i64({2}, {1, 2})}, {f32({2, 6}, {1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6})}) == "");
  CHECK(wrong("Transpose", {x}, {f32({3, 2}, {1, 4, 2, 5, 3, 6})}) == "");
  CHECK(wrong("Unsqueeze", {x, i64({1}, {-1})}, {f32({2, 3, 1}, {1, 2, 3, 4, 5, 6})}) == "");
  CHECK(wrong("Flatten", {f32({2, 1, 3}, {1, 2, 3, 4, 5, 6})}, {x}) == "");
  CHECK(wrong("Expand", {f32({2, 1}, {1, 2}), i64({2}, {1, 2})}, {f32({2, 2}, {1, 1, 2, 2})}) == "");
}

TEST_CASE("a shape that is not known asks for a fixed input") {
  const graph g = graph_of("Reshape", {f32({2}, {1, 2}), i64({1}, {2})}, 1, {});
  CHECK_THROWS_WITH_AS(
      on::import_program(model_of(g), "x"),
      "the operator Reshape (of \"y0\") needs the elements of its input 1 (\"b\") while the program is made; give them as a fixed input",
      on::unknown_value);
}

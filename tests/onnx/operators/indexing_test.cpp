// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/operators/indexing.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("gathers and scatters") {
  const on::model_tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(wrong("Gather", {x, i64({2}, {2, 0})}, {f32({2, 2}, {3, 1, 6, 4})}, {{"axis", 1}}) == "");
  CHECK(wrong("GatherElements", {x, i64({1, 3}, {1, 0, 1})}, {f32({1, 3}, {4, 2, 6})}, {{"axis", 0}}) == "");
  CHECK(wrong("GatherND", {x, i64({2, 2}, {0, 1, 1, -1})}, {f32({2}, {2, 6})}) == "");
  CHECK(wrong("ScatterElements", {x, i64({1, 2}, {1, 0}), f32({1, 2}, {8, 9})}, {f32({2, 3}, {1, 9, 3, 8, 5, 6})}, {{"axis", 0}}) == "");
  CHECK(wrong("ScatterND", {x, i64({1, 1}, {1}), f32({1, 3}, {7, 8, 9})}, {f32({2, 3}, {1, 2, 3, 7, 8, 9})}) == "");
  CHECK(wrong("ScatterND", {x, i64({1, 1}, {1}), f32({1, 3}, {7, 8, 9})}, {f32({2, 3}, {1, 2, 3, 11, 13, 15})}, {{"reduction", "add"}}) ==
        "");
  CHECK(wrong("ScatterElements", {i64({3}, {1, 2, 3}), i64({1}, {1}), i64({1}, {9e15})}, {i64({3}, {1, 9e15, 3})}) == "");
}

TEST_CASE("one-hot rows, triangles and reversed sequences") {
  CHECK(wrong("OneHot", {i64({2}, {1, -1}), i64({}, {3}), f32({2}, {5, 7})}, {f32({2, 3}, {5, 7, 5, 5, 5, 7})}) == "");
  CHECK(wrong("Trilu", {i64({2, 2}, {1, 2, 3, 4})}, {i64({2, 2}, {1, 2, 0, 4})}) == "");
  CHECK(wrong("Trilu", {f32({2, 3}, {1, 2, 3, 4, 5, 6}), i64({}, {-1})}, {f32({2, 3}, {0, 0, 0, 4, 0, 0})}, {{"upper", 0}}) == "");
  CHECK(wrong("ReverseSequence", {f32({3, 2}, {1, 2, 3, 4, 5, 6}), i64({2}, {2, 3})}, {f32({3, 2}, {3, 6, 1, 4, 5, 2})}) == "");
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/operators/binary.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("arithmetic broadcasts by position") {
  CHECK(wrong("Add", {f32({2, 3}, {1, 2, 3, 4, 5, 6}), f32({3}, {10, 20, 30})}, {f32({2, 3}, {11, 22, 33, 14, 25, 36})}) == "");
  CHECK(wrong("Sub", {f32({2, 1}, {1, 2}), f32({1, 2}, {10, 20})}, {f32({2, 2}, {-9, -19, -8, -18})}) == "");
  CHECK(wrong("Mul", {f32({2, 2}, {1, 2, 3, 4}), f32({}, {2})}, {f32({2, 2}, {2, 4, 6, 8})}) == "");
  CHECK(wrong("Pow", {f32({2}, {2, 3}), i64({2}, {3, 2})}, {f32({2}, {8, 9})}) == "");
  CHECK(wrong("Max", {f32({2}, {1, 5}), f32({2}, {3, 2}), f32({2}, {2, 2})}, {f32({2}, {3, 5})}) == "");
  CHECK(wrong("Add", {f32({2, 2, 1}, {1, 2, 3, 4}), f32({2}, {10, 20})}, {f32({2, 2, 1}, {11, 22, 13, 24})},
              {{"broadcast", 1}, {"axis", 1}}, 6) == "");
}

TEST_CASE("comparisons, logic and selection") {
  CHECK(wrong("Less", {f32({2}, {1, 5}), f32({2}, {3, 2})}, {truth({2}, {1, 0})}) == "");
  CHECK(wrong("Equal", {truth({2}, {1, 0}), truth({2}, {1, 1})}, {truth({2}, {1, 0})}) == "");
  CHECK(wrong("Xor", {truth({2}, {1, 0}), truth({2}, {1, 1})}, {truth({2}, {0, 1})}) == "");
  CHECK(wrong("And", {truth({2, 1}, {1, 0}), truth({2}, {1, 1})}, {truth({2, 2}, {1, 1, 0, 0})}) == "");
  CHECK(wrong("Where", {truth({2}, {1, 0}), i64({2}, {1, 2}), i64({2}, {3, 4})}, {i64({2}, {1, 4})}) == "");
}

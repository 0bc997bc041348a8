// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/operators/reduce.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("reductions") {
  const on::model_tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(wrong("ReduceSum", {x, i64({1}, {1})}, {f32({2, 1}, {6, 15})}) == "");
  CHECK(wrong("ReduceMean", {x}, {f32({3}, {2.5, 3.5, 4.5})}, {{"axes", std::vector<std::int64_t>{0}}, {"keepdims", 0}}) == "");
  CHECK(wrong("ReduceL2", {x}, {f32({1, 1}, {std::sqrt(91.0)})}) == "");
  CHECK(wrong("ReduceMax", {i32({2, 2}, {1, 9, 3, 4})}, {i32({2, 1}, {9, 4})}, {{"axes", std::vector<std::int64_t>{-1}}}) == "");
  CHECK(wrong("ReduceProd", {x}, {f32({2, 1}, {6, 120})}, {{"axes", std::vector<std::int64_t>{1}}}) == "");
  CHECK(wrong("ArgMax", {f32({2, 3}, {1, 3, 3, 6, 5, 6})}, {i64({2}, {1, 0})}, {{"axis", 1}, {"keepdims", 0}}) == "");
  CHECK(wrong("ArgMax", {f32({2, 3}, {1, 3, 3, 6, 5, 6})}, {i64({2}, {2, 2})}, {{"axis", 1}, {"keepdims", 0}, {"select_last_index", 1}}) ==
        "");
  CHECK(wrong("CumSum", {x, i64({}, {1})}, {f32({2, 3}, {1, 3, 6, 4, 9, 15})}) == "");
  CHECK(wrong("TopK", {x, i64({1}, {2})}, {f32({2, 2}, {3, 2, 6, 5}), i64({2, 2}, {2, 1, 2, 1})}) == "");
}

TEST_CASE("softmax along any dim") {
  const double a = 1 / (1 + std::exp(1.0)), b = 1 - a;
  CHECK(wrong("Softmax", {f32({2, 2}, {0, 1, 3, 4})}, {f32({2, 2}, {a, b, a, b})}) == "");
  CHECK(wrong("Softmax", {f32({2, 2}, {0, 3, 1, 4})}, {f32({2, 2}, {a, a, b, b})}, {{"axis", 0}}) == "");
  CHECK(wrong("LogSoftmax", {f32({2, 2}, {0, 3, 1, 4})}, {f32({2, 2}, {std::log(a), std::log(a), std::log(b), std::log(b)})},
              {{"axis", 0}}) == "");
  CHECK(wrong("Hardmax", {f32({2, 3}, {1, 3, 3, 6, 5, 6})}, {f32({2, 3}, {0, 1, 0, 1, 0, 0})}) == "");
}

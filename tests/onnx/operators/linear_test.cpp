// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/operators/linear.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("matrix products") {
  const on::model_tensor a = f32({2, 2}, {1, 2, 3, 4}), b = f32({2, 2}, {5, 6, 7, 8});
  CHECK(wrong("MatMul", {a, b}, {f32({2, 2}, {19, 22, 43, 50})}) == "");
  CHECK(wrong("MatMul", {f32({2, 1, 2}, {1, 2, 3, 4}), b}, {f32({2, 1, 2}, {19, 22, 43, 50})}) == "");
  CHECK(wrong("MatMul", {f32({2}, {1, 2}), b}, {f32({2}, {19, 22})}) == "");
  CHECK(wrong("Gemm", {a, b, f32({2}, {1, 2})}, {f32({2, 2}, {2 * 26 + 1, 2 * 30 + 2, 2 * 38 + 1, 2 * 44 + 2})},
              {{"alpha", 2.0}, {"transA", 1}}) == "");
  CHECK(wrong("Einsum", {a, b}, {f32({2, 2}, {19, 22, 43, 50})}, {{"equation", "ij,jk->ik"}}) == "");
  CHECK(wrong("Einsum", {a, b}, {f32({}, {260})}, {{"equation", "ij,kl->"}}) == "");
  CHECK(refusal("MatMul", {f32({2, 3}, {1, 2, 3, 4, 5, 6}), b}, {}) ==
        "the operator MatMul (of \"y0\") multiplies matrices [2,3] and [2,2]");
}

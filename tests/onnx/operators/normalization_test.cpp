// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/operators/normalization.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("normalizations") {
  const on::model_tensor x = f32({2, 2}, {1, 3, 5, 9});
  CHECK(wrong("BatchNormalization", {x, f32({2}, {2, 1}), f32({2}, {0, 1}), f32({2}, {1, 3}), f32({2}, {4, 9})},
              {f32({2, 2}, {0, 1, 4, 3})}, {{"epsilon", 0.0}}) == "");
  CHECK(wrong("LayerNormalization", {x, f32({2}, {1, 2}), f32({2}, {0, 1})}, {f32({2, 2}, {-1, 3, -1, 3})}, {{"epsilon", 0.0}}) == "");
  CHECK(wrong("LayerNormalization", {x, f32({2}, {1, 2})}, {f32({2, 2}, {-1, 2, -1, 2})}, {{"epsilon", 0.0}}) == "");
  CHECK(wrong("InstanceNormalization", {f32({1, 2, 2}, {1, 3, 5, 9}), f32({2}, {1, 2}), f32({2}, {0, 1})}, {f32({1, 2, 2}, {-1, 1, -1, 3})},
              {{"epsilon", 0.0}}) == "");
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/operators/signal.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("windows and Fourier transforms") {
  CHECK(wrong("HannWindow", {i64({}, {4})}, {f32({4}, {0, 0.5, 1, 0.5})}) == "");
  const on::model_tensor x = f32({1, 4, 1}, {1, 2, 3, 4});
  CHECK(wrong("DFT", {x}, {f32({1, 4, 2}, {10, 0, -2, 2, -2, 0, -2, -2})}, {{"axis", 1}}) == "");
  CHECK(wrong("DFT", {f32({1, 4, 2}, {10, 0, -2, 2, -2, 0, -2, -2})}, {f32({1, 4, 2}, {1, 0, 2, 0, 3, 0, 4, 0})},
              {{"axis", 1}, {"inverse", 1}}) == "");
}

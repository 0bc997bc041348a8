// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/operators/recurrent.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("recurrent layers are scans") {
  // One unit with weights 1: h = tanh(x + h).
  const double first = std::tanh(0.5), second = std::tanh(-0.25 + first);
  CHECK(wrong("RNN", {f32({2, 1, 1}, {0.5, -0.25}), f32({1, 1, 1}, {1}), f32({1, 1, 1}, {1})},
              {f32({2, 1, 1, 1}, {first, second}), f32({1, 1, 1}, {second})}, {{"hidden_size", 1}}) == "");
  const double back = std::tanh(-0.25), last = std::tanh(0.5 + back);
  CHECK(wrong("RNN", {f32({2, 1, 1}, {0.5, -0.25}), f32({1, 1, 1}, {1}), f32({1, 1, 1}, {1})},
              {f32({2, 1, 1, 1}, {last, back}), f32({1, 1, 1}, {last})}, {{"hidden_size", 1}, {"direction", "reverse"}}) == "");
}

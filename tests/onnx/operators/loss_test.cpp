// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/operators/loss.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("losses of classes") {
  const on::model_tensor logs = f32({2, 2}, {-1, -2, -3, -4}), classes = i64({2}, {1, 0});
  CHECK(wrong("NegativeLogLikelihoodLoss", {logs, classes}, {f32({2}, {2, 3})}, {{"reduction", "none"}}) == "");
  CHECK(wrong("NegativeLogLikelihoodLoss", {logs, classes}, {f32({}, {2.5})}) == "");
  CHECK(wrong("NegativeLogLikelihoodLoss", {logs, classes, f32({2}, {1, 3})}, {f32({}, {2.25})}) == "");
  CHECK(wrong("NegativeLogLikelihoodLoss", {logs, classes}, {f32({}, {3})}, {{"ignore_index", 1}}) == "");
  const double loss = std::log(1 + std::exp(-1.0));
  CHECK(wrong("SoftmaxCrossEntropyLoss", {logs, i64({2}, {0, 0})}, {f32({}, {loss})}) == "");
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/node/indices.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("indices count from the back, known or not") {
  graph g = graph_of("Gather", {f32({3}, {5, 6, 7}), i64({2}, {-1, 0})}, 1, {});
  CHECK(wrong(model_of(g), {f32({3}, {5, 6, 7}), i64({2}, {-1, 0})}, {f32({2}, {7, 5})}) == "");
  g.initializers.emplace_back("b", i64({2}, {-1, 0}));
  g.inputs.pop_back();
  CHECK(wrong(model_of(g), {f32({3}, {5, 6, 7})}, {f32({2}, {7, 5})}) == "");
}

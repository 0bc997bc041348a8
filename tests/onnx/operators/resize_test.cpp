// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/operators/resize.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("resizes") {
  const on::model_tensor x = f32({1, 1, 2}, {1, 3}), none = f32({0}, {}), twice = f32({3}, {1, 1, 2});
  const auto resized = [&](const std::vector<attribute>& attributes, const on::model_tensor& expected) {
    graph g = graph_of("Resize", {x, none, twice}, 1, attributes);
    g.nodes[0].inputs[1] = "";
    g.inputs.erase(g.inputs.begin() + 1);
    return wrong(model_of(g), {x, twice}, {expected});
  };
  CHECK(resized({}, f32({1, 1, 4}, {1, 1, 3, 3})) == "");
  CHECK(resized({{"coordinate_transformation_mode", "asymmetric"}, {"nearest_mode", "floor"}}, f32({1, 1, 4}, {1, 1, 3, 3})) == "");
  CHECK(resized({{"mode", "linear"}}, f32({1, 1, 4}, {1, 1.5, 2.5, 3})) == "");
  CHECK(resized({{"mode", "linear"}, {"coordinate_transformation_mode", "align_corners"}},
                f32({1, 1, 4}, {1, 1 + 2.0 / 3, 1 + 4.0 / 3, 3})) == "");
}

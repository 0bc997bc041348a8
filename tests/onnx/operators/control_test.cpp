// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/operators/control.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("a known condition takes a branch, and a known count unrolls a loop") {
  graph twice, body, g;
  twice.nodes.push_back({"Add", {"x", "x"}, {"t"}});
  twice.outputs.push_back({"t"});
  graph same;
  same.nodes.push_back({"Identity", {"x"}, {"s"}});
  same.outputs.push_back({"s"});
  g.inputs.push_back({"x", on::element::f32, {"2"}});
  g.initializers.emplace_back("yes", truth({}, {1}));
  g.nodes.push_back({"If", {"yes"}, {"y"}, {{"then_branch", twice}, {"else_branch", same}}});
  g.outputs.push_back({"y"});
  CHECK(wrong(model_of(g), {f32({2}, {1, 2})}, {f32({2}, {2, 4})}) == "");

  body.inputs = {{"i", on::element::i64, {}}, {"c", on::element::boolean, {}}, {"s", on::element::f32, {"2"}}};
  body.nodes = {{"Add", {"s", "s"}, {"next"}}, {"Identity", {"c"}, {"go"}}, {"Identity", {"next"}, {"row"}}};
  body.outputs = {{"go"}, {"next"}, {"row"}};
  g.initializers.emplace_back("count", i64({}, {3}));
  g.nodes = {{"Loop", {"count", "", "x"}, {"y", "rows"}, {{"body", body}}}};
  g.outputs = {{"y"}, {"rows"}};
  CHECK(wrong(model_of(g), {f32({2}, {1, 2})}, {f32({2}, {8, 16}), f32({3, 2}, {2, 4, 4, 8, 8, 16})}) == "");
}

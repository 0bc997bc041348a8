// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/program/fold.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("shapes that follow from the extents of inputs are known") {
  // reshape(x, concat(shape(x)[0:1], [-1]))
  graph g;
  g.inputs.push_back({"x", on::element::f32, {"n", "2", "3"}});
  g.initializers = {{"zero", i64({1}, {0})}, {"one", i64({1}, {1})}, {"rest", i64({1}, {-1})}};
  g.nodes = {{"Shape", {"x"}, {"all"}},
             {"Slice", {"all", "zero", "one"}, {"first"}},
             {"Concat", {"first", "rest"}, {"to"}, {{"axis", 0}}},
             {"Reshape", {"x", "to"}, {"y"}}};
  g.outputs.push_back({"y"});
  CHECK(wrong(model_of(g), {f32({2, 2, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})},
              {f32({2, 6}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})}) == "");
}

TEST_CASE("arithmetic of known integers is that of the program") {
  const auto known = [](const std::string& operation, const std::vector<on::model_tensor>& inputs,
                        const std::vector<on::model_tensor>& expected, const std::vector<attribute>& attributes = {}) {
    graph g = graph_of(operation, inputs, expected.size(), attributes);
    for (std::size_t i = 0; i < inputs.size(); ++i) g.initializers.emplace_back(g.inputs[i].name, inputs[i]);
    g.inputs.clear();
    return wrong(model_of(g), {}, expected);
  };
  CHECK(known("Div", {i64({2}, {7, -7}), i64({}, {2})}, {i64({2}, {3, -3})}) == "");
  CHECK(known("Mod", {i64({2}, {7, -7}), i64({}, {3})}, {i64({2}, {1, 2})}) == "");
  CHECK(known("Gather", {i64({3}, {5, 6, 7}), i64({}, {-1})}, {i64({}, {7})}) == "");
  CHECK(known("Where", {truth({2}, {1, 0}), i64({}, {1}), i64({2}, {3, 4})}, {i64({2}, {1, 4})}) == "");
  CHECK(known("ReduceProd", {i64({3}, {5, 6, 7})}, {i64({}, {210})}, {{"keepdims", 0}}) == "");
  CHECK(known("Range", {i64({}, {1}), i64({}, {8}), i64({}, {3})}, {i64({3}, {1, 4, 7})}) == "");
  CHECK(known("Cast", {f32({2}, {-1.5, 2.5})}, {i64({2}, {-1, 2})}, {{"to", 7}}) == "");
  CHECK(known("ConstantOfShape", {i64({2}, {1, 2})}, {f32({1, 2}, {0, 0})}) == "");
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/program/importer.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("a model that gshard does not import is refused with its node") {
  CHECK(refusal("NonMaxSuppression", {f32({1}, {1})}, {}) == "the operator NonMaxSuppression (of \"y0\") is not one that gshard imports");
  graph g = graph_of("Relu", {f32({1}, {1})}, 1, {});
  g.nodes[0].inputs[0] = "nothing";
  CHECK_THROWS_WITH_AS(on::import_program(model_of(g), "x"),
                       "the operator Relu (of \"y0\") reads \"nothing\", which no node before it makes", gshard::error);
  g = graph_of("Relu", {f32({1}, {1})}, 1, {});
  g.nodes.push_back(g.nodes[0]);
  CHECK_THROWS_WITH_AS(on::import_program(model_of(g), "x"), "the operator Relu (of \"y0\") makes the value \"y0\" a second time",
                       gshard::error);
}

TEST_CASE("a function of the model is replaced by its nodes") {
  on::model m = model_of(graph_of("Half", {f32({2}, {2, 4})}, 1, {{"by", 0.25}}));
  m.graph.nodes[0].domain = "mine";
  m.opsets.emplace_back("mine", 1);
  on::model_function f;
  f.domain = "mine";
  f.name = "Half";
  f.inputs = {"v"};
  f.outputs = {"w"};
  f.opsets = {{"", 17}};
  f.nodes = model_of(graph_of("LeakyRelu", {f32({2}, {2, 4})}, 1, {{"alpha", 0.5}})).graph.nodes;
  f.nodes[0].inputs = {"v"};
  f.nodes[0].outputs = {"w"};
  f.nodes[0].attributes[0].refers_to = "by";
  m.functions.push_back(f);
  CHECK(wrong(m, {f32({2}, {2, -4})}, {f32({2}, {2, -1})}) == "");
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/program/import_program.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

#include <string_view>

namespace on = gshard::onnx;
using namespace onnx_tests;

namespace {

graph dense() {
  graph g;
  g.inputs.push_back({"x", on::element::f32, {"batch", "2"}});
  g.initializers = {{"layer.weight", f32({2, 3}, {1, 2, 3, 4, 5, 6})}, {"layer.bias", f32({3}, {1, 0, 2})}};
  g.nodes = {{"Gemm", {"x", "layer.weight", "layer.bias"}, {"h"}}, {"Relu", {"h"}, {"y"}}};
  g.outputs.push_back({"y"});
  return g;
}

}  // namespace

TEST_CASE("parameters have the names of the model, and each device loads its shard") {
  const on::imported_program p = on::import_program(model_of(dense()), "x", {.sizes = {{"batch", 4}}, .shardings = {{"x", "B@x,M"}}});
  REQUIRE(p.stored.size() == 2);
  CHECK(p.stored[0].parameter == "layer.weight");
  CHECK(p.program.plan().count(gshard::op::einsum) == 1);
  for (const gshard::node& step : p.program.plan().steps) {
    if (step.kind != gshard::op::einsum) continue;
    CHECK(step.place.line == 1);
    CHECK(std::string_view(step.place.file) == "the model");
    CHECK(std::string_view(step.place.scope) == "h");
  }
  CHECK(wrong(model_of(dense()), {f32({1, 2}, {1, 1})}, {f32({1, 3}, {6, 7, 11})}) == "");
}

TEST_CASE("what the model leaves open must be stated") {
  CHECK_THROWS_WITH_AS(on::import_program(model_of(dense()), "x"), "the dim \"batch\" of the input \"x\" has no size: state it",
                       gshard::error);
  CHECK_THROWS_WITH_AS(on::import_program(model_of(dense()), "x", {.sizes = {{"batch", 4}}, .shardings = {{"x", "B@x"}}}),
                       "the sharding \"B@x\" is not one of the 2 dims of the input \"x\"", gshard::error);
}

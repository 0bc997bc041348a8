// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/rewrite/graph_values.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("a graph's values have makers, readers and ranks") {
  graph g;
  g.inputs.push_back({"x", on::element::f32, {"2", "3"}});
  g.initializers = {{"halves", f32({2}, {0.5, 0.5})}, {"axes", i64({1}, {-1})}};
  g.nodes = {{"Cast", {"x"}, {"a"}, {{"to", 1}}},
             {"Identity", {"a"}, {"b"}},
             {"Constant", {}, {"three"}, {{"value_int", 3}}},
             {"ConstantOfShape", {"axes"}, {"zeros"}},
             {"ReduceSum", {"b", "axes"}, {"y"}}};
  g.outputs.push_back({"y"});
  const on::model m = model_of(g);
  const on::rewriting::graph_values all(m.graph);
  CHECK(all.behind_casts("b") == "x");
  CHECK(all.maker("y")->operation == "ReduceSum");
  CHECK(all.maker("x") == nullptr);
  CHECK(all.readers("axes") == 2);
  CHECK(all.rank("b") == 2);
  CHECK(all.rank("y") == -1);
  CHECK(all.from_back(1, "b") == -1);
  CHECK(all.number("halves") == 0.5);
  CHECK(all.number("three") == 3);
  CHECK_FALSE(all.number("x").has_value());
  CHECK(all.is_zero("zeros"));
  CHECK_FALSE(all.is_zero("x"));
  CHECK(all.is_constant("three"));
  CHECK(all.integers(*all.maker("y"), "axes", 1) == std::vector<std::int64_t>{-1});
  CHECK(all.input(*all.maker("y"), 7) == "");
}

TEST_CASE("casts in a circle end") {
  graph g;
  g.nodes = {{"Cast", {"b"}, {"a"}, {{"to", 1}}}, {"Cast", {"a"}, {"b"}, {{"to", 1}}}};
  g.outputs.push_back({"a"});
  const on::model m = model_of(g);
  CHECK(on::rewriting::graph_values(m.graph).maker_behind_casts("a")->operation == "Cast");
}

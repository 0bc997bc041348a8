// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/operators/experts.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("tokens are sent to the experts with the largest gates") {
  graph g;
  g.inputs = {{"x", on::element::f32, {"3", "1"}}, {"gates", on::element::f32, {"3", "2"}}};
  g.initializers = {{"w.0", f32({1, 1}, {10})}, {"w.1", f32({1, 1}, {100})}};
  g.nodes = {{"SendToExperts", {"x", "gates"}, {"rows", "count", "row", "weight"}, {{"k", 1}}},
             {"ExpertWeights", {"count", "w.0", "w.1"}, {"w"}},
             {"ExpertProduct", {"rows", "w", "rows", "count"}, {"h"}},
             {"CombineExperts", {"h", "row", "weight", "rows", "count", "x"}, {"y"}}};
  g.outputs.push_back({"y"});
  on::model m = model_of(g);
  m.opsets.emplace_back(on::operators::experts_domain, 1);
  for (on::model_node& n : m.graph.nodes) n.domain = on::operators::experts_domain;
  const std::vector<on::model_tensor> given{f32({3, 1}, {1, 2, 3}), f32({3, 2}, {0.5, 0, 0, -1, 2, 0})};
  CHECK(wrong(m, given, {f32({3, 1}, {5, -200, 60})}) == "");
}

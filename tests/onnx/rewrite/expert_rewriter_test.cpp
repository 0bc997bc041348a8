// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/rewrite/expert_rewriter.hpp>

#include "dense_experts.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("the nodes of a mixture of experts") {
  const on::model m = dense_experts().make();
  const on::rewriting::graph_values all(m.graph);
  on::rewriting::expert_nodes experts(all, "x", "experts.0.y");
  REQUIRE(experts.add("experts.0.y"));
  REQUIRE(experts.add("experts.1.y"));
  on::rewriting::expert_sum sum{"y", {"weight.0", "weight.1"}, {"x"}, 2, std::move(experts)};
  const auto nodes = on::rewriting::expert_rewriter(all, sum).nodes();
  REQUIRE(nodes.has_value());
  std::vector<std::string> operations;
  for (const on::model_node& n : *nodes) operations.push_back(n.operation);
  CHECK(operations == std::vector<std::string>{"Concat", "SendToExperts", "ExpertWeights", "ExpertProduct", "ExpertWeights", "ExpertBias",
                                               "Sigmoid", "Mul", "ExpertWeights", "ExpertProduct", "CombineExperts", "Add"});
  CHECK(nodes->back().outputs[0] == "y");
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/rewrite/expert_nodes.hpp>

#include "dense_experts.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("experts have the same operators and other constants") {
  const on::model m = dense_experts().make();
  const on::rewriting::graph_values all(m.graph);
  on::rewriting::expert_nodes experts(all, "x", "experts.0.y");
  CHECK(experts.add("experts.0.y"));
  CHECK(experts.add("experts.1.y"));
  CHECK_FALSE(experts.add("experts.2.h"));
  CHECK(experts.add("experts.2.y"));
  CHECK(experts.nodes().size() == 5);
  CHECK(experts.constants().at("experts.0.w1") == std::vector<std::string>{"experts.0.w1", "experts.1.w1", "experts.2.w1"});
  CHECK_FALSE(experts.number("experts.0.w1").has_value());
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/rewrite/expert_weight.hpp>

#include "dense_experts.hpp"

#include <doctest/doctest.h>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("the weight of an expert is one by its choices") {
  for (const expert_weights how :
       {expert_weights::masked_product, expert_weights::masked_choice, expert_weights::scattered, expert_weights::one_hot}) {
    CAPTURE(int(how));
    const on::model m = dense_experts{how}.make();
    const on::rewriting::graph_values all(m.graph);
    const on::rewriting::weight_finder weights(all);
    CHECK(weights.find("weight.2") == on::rewriting::expert_weight{"choices", 2, 2});
    CHECK_FALSE(weights.find("weights").has_value());
    CHECK_FALSE(weights.find("masked.2").has_value());
    CHECK_FALSE(weights.find("x").has_value());
  }
}

TEST_CASE("choices along another dim are not those of a token") {
  dense_experts made;
  made.make();
  for (node& n : made.g.nodes)
    if (n.operation == "TopK") n.attributes.push_back({"axis", 0});
  const on::model m = model_of(made.g);
  const on::rewriting::graph_values all(m.graph);
  CHECK_FALSE(on::rewriting::weight_finder(all).find("weight.2").has_value());
}

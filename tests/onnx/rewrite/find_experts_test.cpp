// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/rewrite/find_experts.hpp>

#include <gshard/moe/routing/grouped_product.hpp>
#include <gshard/onnx/program/import_program.hpp>

#include "dense_experts.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace gs = gshard;
namespace on = gshard::onnx;
using namespace onnx_tests;

namespace {

/// The result of the loop over all experts.
on::model_tensor expected(const on::model& m) {
  const on::imported_program p = on::import_program(m, "x", {.experts = false});
  CHECK(p.program.plan().count(gs::op::grouped_product) == 0);
  const auto cluster = gs::simulate("x", 1);
  const std::vector<float> y = gs::to_global<float>(on::run_once(p, cluster, {dense_experts::input()}).front());
  return f32({dense_experts::tokens, dense_experts::features}, {y.begin(), y.end()});
}
bool has_experts(const dense_experts& made) {
  return on::find_experts(model_of(made.g)).has_value();
}

}  // namespace

TEST_CASE("loops over all experts become mixtures of experts, with the same results") {
  for (const expert_weights how :
       {expert_weights::masked_product, expert_weights::masked_choice, expert_weights::scattered, expert_weights::one_hot})
    for (const bool uses_gemm : {false, true}) {
      CAPTURE(int(how));
      CAPTURE(uses_gemm);
      const on::model m = dense_experts{how, uses_gemm}.make();
      const on::imported_program p = on::import_program(m, "x");
      CHECK(p.program.plan().count(gs::op::grouped_product) == 3);  // two matrices and a bias
      CHECK(p.program.plan().find("experts.*.w1") != nullptr);
      CHECK(wrong(m, {dense_experts::input()}, {expected(m)}) == "");
    }
}

TEST_CASE("experts are sharded, and tokens are sent to them") {
  const on::model m = dense_experts().make();
  const on::imported_program p = on::import_program(m, "x=2", {.shardings = {{"x", "T@x,M"}}, .expert_axis = "x"});
  CHECK(p.program.plan().count(gs::op::ragged_all_to_all) == 2);
  CHECK(p.program.plan().count(gs::op::all_gather) == 0);
  const auto cluster = gs::simulate(p.program.mesh(), {2});
  CHECK(on::difference_of(on::run_once(p, cluster, {dense_experts::input()}).front(), expected(m)) == "");
  CHECK_THROWS_WITH_AS(on::import_program(m, "x=3", {.expert_axis = "x"}),
                       "the operator gshard.experts.SendToExperts (of \"y/experts/rows\") has 4 experts, which the 3 devices of the mesh "
                       "axis \"x\" do not divide",
                       gs::error);
  CHECK_THROWS_WITH_AS(on::import_program(m, "x=2", {.expert_axis = "z"}),
                       "the operator gshard.experts.SendToExperts (of \"y/experts/rows\") has experts on the mesh axis \"z\", which the "
                       "mesh does not have",
                       gs::error);
}

TEST_CASE("sums that are no mixture of experts stay") {
  dense_experts made;
  made.make();
  CHECK(has_experts(made));
  SUBCASE("an expert has another operator") {
    for (node& n : made.g.nodes)
      if (n.outputs[0] == "experts.2.gate") n.operation = "Tanh";
    CHECK_FALSE(has_experts(made));
  }
  SUBCASE("an expert has another shape") {
    for (auto& [name, t] : made.g.initializers)
      if (name == "experts.1.b1") t = f32({1, 5}, {1, 2, 3, 4, 5});
    CHECK_FALSE(has_experts(made));
  }
  SUBCASE("two terms are of one expert") {
    for (auto& [name, t] : made.g.initializers)
      if (name == "number.3") t = i64({}, {2});
    CHECK_FALSE(has_experts(made));
  }
  SUBCASE("the weights are not sparse") {
    for (node& n : made.g.nodes)
      if (n.outputs[0] == "weight.0") n = {"ReduceSum", {"weights", "last"}, {"weight.0"}};
    // The first expert computes all tokens, and the others do not.
    const on::model m = model_of(made.g);
    CHECK(has_experts(made));
    CHECK(wrong(m, {dense_experts::input()}, {expected(m)}) == "");
  }
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/rewrite/find_experts.hpp>

#include <gshard/moe/routing/grouped_product.hpp>
#include <gshard/onnx/program/import_program.hpp>

#include "dense_experts.hpp"

#include <doctest/doctest.h>

#include <cstddef>
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
  SUBCASE("an operator of a user has the name of one of ONNX") {
    on::model m = model_of(made.g);
    for (on::model_node& n : m.graph.nodes)
      if (n.operation == "Sigmoid") n.domain = "of.user";
    CHECK_FALSE(on::find_experts(m).has_value());
  }
  SUBCASE("two terms are of one expert") {
    for (auto& [name, t] : made.g.initializers)
      if (name == "number.3") t = i64({}, {2});
    CHECK_FALSE(has_experts(made));
  }
  SUBCASE("nodes lack their inputs and outputs") {
    for (std::size_t i = 0; i < made.g.nodes.size(); ++i) {
      CAPTURE(i);
      graph g = made.g;
      g.nodes[i].inputs.clear();
      on::find_experts(model_of(g));
      g.nodes[i].outputs.clear();
      on::find_experts(model_of(g));
      g = made.g;
      g.nodes[i].attributes.clear();
      on::find_experts(model_of(g));
    }
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

TEST_CASE("what the caller states counts, not the file") {
  dense_experts made;
  made.make();
  made.g.inputs.push_back({"count", on::element::i64, {"1"}});
  const on::model m = model_of(made.g);
  CHECK(on::find_experts(m).has_value());
  CHECK_FALSE(on::find_experts(m, {"count"}).has_value());
}

TEST_CASE("a mixture that gshard cannot compute stays a loop over all experts") {
  dense_experts made;
  made.make();
  for (auto& [name, t] : made.g.initializers)  // broadcast to all features
    if (name.ends_with(".b1")) t = f32({1}, {double(name[8] - '0') / 4});
  const on::model m = model_of(made.g);
  CHECK(on::find_experts(m).has_value());
  CHECK(wrong(m, {dense_experts::input()}, {expected(m)}) == "");
  CHECK_THROWS_AS(on::import_program(m, "x=2", {.expert_axis = "x"}), gs::error);
}

TEST_CASE("experts of several choices, and results that others read") {
  dense_experts made{expert_weights::scattered};
  made.make();
  SUBCASE("the result of an expert is an output") { made.g.outputs.push_back({"experts.1.y"}); }
  SUBCASE("the choices are an output") { made.g.outputs.push_back({"choices"}); }
  SUBCASE("the sum of some experts is an output") { made.g.outputs.push_back({"sum.1.all"}); }
  const on::model m = model_of(made.g);
  const on::imported_program p = on::import_program(m, "x", {.experts = false}), q = on::import_program(m, "x");
  const auto cluster = gs::simulate("x", 1);
  const auto y = on::run_once(p, cluster, {dense_experts::input()}), z = on::run_once(q, cluster, {dense_experts::input()});
  REQUIRE(y.size() == 2);
  REQUIRE(z.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    if (y[i].type() != gs::dtype::f32) continue;
    const std::vector<float> a = gs::to_global<float>(y[i]), b = gs::to_global<float>(z[i]);
    REQUIRE(a.size() == b.size());
    for (std::size_t k = 0; k < a.size(); ++k) CHECK(a[k] == doctest::Approx(double(b[k])).epsilon(1e-5));
  }
}

TEST_CASE("experts in any order, of tokens with more dims") {
  dense_experts made{expert_weights::masked_choice};
  made.make();
  made.g.inputs[0].dims = {"2", "3", "3"};
  for (auto& [name, t] : made.g.initializers)  // the last number first
    if (name.starts_with("number.")) t = i64({}, {double('3' - name.back())});
  const on::model m = model_of(made.g);
  on::model_tensor x = dense_experts::input();
  x.shape = {2, 3, 3};
  const on::imported_program dense = on::import_program(m, "x", {.experts = false});
  const std::vector<float> y = gs::to_global<float>(on::run_once(dense, gs::simulate("x", 1), {x}).front());
  CHECK(wrong(m, {x}, {f32({2, 3, 3}, {y.begin(), y.end()})}) == "");
}

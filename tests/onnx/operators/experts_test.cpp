// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/operators/experts.hpp>

#include <gshard/onnx/program/import_program.hpp>

#include "../rewrite/dense_experts.hpp"

#include <doctest/doctest.h>

#include <string>

namespace gs = gshard;
namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("the mesh axis of experts must divide them") {
  const on::model m = dense_experts().make();
  CHECK_THROWS_WITH_AS(on::import_program(m, "x=3", {.expert_axis = "x"}),
                       "the operator gshard.experts.SendToExperts (of \"y/experts/rows\") has 4 experts, which the 3 devices of the mesh "
                       "axis \"x\" do not divide",
                       gs::error);
  CHECK_THROWS_WITH_AS(on::import_program(m, "x=2", {.expert_axis = "z"}),
                       "the operator gshard.experts.SendToExperts (of \"y/experts/rows\") has experts on the mesh axis \"z\", which the "
                       "mesh does not have",
                       gs::error);
  CHECK_THROWS_WITH_AS(on::import_program(m, "x", {.expert_axis = "x"}),
                       "the operator gshard.experts.SendToExperts (of \"y/experts/rows\") has experts on the mesh axis \"x\": state its "
                       "extent",
                       gs::error);
}

TEST_CASE("files have none of these operators") {
  on::model m = dense_experts().make();
  m.opsets.emplace_back(on::operators::experts_domain, 1);
  CHECK_THROWS_WITH_AS(on::import_program(m, "x"), "the model has operators of the domain gshard.experts, which no file has", gs::error);
}

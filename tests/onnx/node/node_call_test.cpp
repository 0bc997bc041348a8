// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/node/node_call.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("dims count from the back, and are in range") {
  CHECK(on::node_call::dim(-1, 3) == 2);
  CHECK(on::node_call::dim(0, 3) == 0);
  CHECK_THROWS_WITH_AS(on::node_call::dim(3, 3), "has axis = 3 for a tensor of 3 dims", gshard::error);
  CHECK_THROWS_WITH_AS(on::node_call::dims({0, -3}, 3), "has axes with dim 0 twice", gshard::error);
}

TEST_CASE("an attribute that no operator reads is refused") {
  CHECK(refusal("Relu", {f32({1}, {1})}, {{"strange", 3}}) ==
        "the operator Relu (of \"y0\") has the attribute strange = 3, which gshard does not know");
  CHECK(refusal("Gelu", {f32({1}, {1})}, {{"approximate", "other"}}) ==
        "the operator Gelu (of \"y0\") has approximate = \"other\", which gshard does not compute");
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/program/check_model.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("a check tells passed, refused and wrong apart") {
  CHECK(wrong("Relu", {f32({3}, {-1, 0, 1})}, {f32({3}, {0, 0, 1})}) == "");
  CHECK(wrong("Relu", {f32({3}, {-1, 0, 1})}, {f32({3}, {0, 0, 2})}) ==
        "wrong: one device: the output \"y0\" has 1.000000 at element 2, and not 2.000000");
  CHECK(wrong("Unique", {f32({1}, {1})}, {f32({1}, {1})}) == "refused: the operator Unique (of \"y0\") is not one that gshard imports");
  const on::check_result r = on::check_tensors(model_of(graph_of("Neg", {f32({2, 2}, {1, 2, 3, 4})}, 1, {})), {f32({2, 2}, {1, 2, 3, 4})},
                                               {f32({2, 2}, {-1, -2, -3, -4})});
  CHECK(r.runs > 10);
  CHECK(!r.is_known);
}

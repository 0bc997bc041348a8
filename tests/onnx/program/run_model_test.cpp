// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/program/run_model.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("differences are sentences") {
  const auto cluster = gshard::simulate("x", 2);
  const gshard::runtime_tensor t = on::scattered(cluster, "f32[A@x,]", f32({3}, {1, 2, 3}));
  CHECK(on::difference_of(t, f32({3}, {1, 2.001, 3})) == "");
  CHECK(on::difference_of(t, f32({3}, {1, 2.1, 3})) == "has 2.000000 at element 1, and not 2.100000");
  CHECK(on::difference_of(t, f32({2}, {1, 2})) == "has the shape [3], and not [2]");
  CHECK(on::difference_of(t, f64({3}, {1, 2, 3})) == "has elements of type f32, and not double");
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/file/model.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("a model knows the versions of its operators") {
  on::model m;
  m.opsets = {{"", 13}, {"mine", 2}};
  CHECK(m.opset("") == 13);
  CHECK(m.opset("mine") == 2);
  CHECK(m.opset("other") == -1);
}

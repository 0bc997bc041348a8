// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/node/operator_functions.hpp>

#include <gshard/core/ir/pointwise.hpp>
#include <gshard/onnx/node/scalar_functions.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>

namespace on = gshard::onnx;

TEST_CASE("functions of operators have names in plan files") {
  const gshard::plan_functions all = on::model_functions();
  CHECK(all.name_of(gshard::undifferentiated<on::functions::hard_swish{}, 1>) == "onnx.hard_swish");
  CHECK(all.find("onnx.selu") == &gshard::undifferentiated<on::functions::selu{}, 3>);
  CHECK(all.find("softmax.exponential") != nullptr);
  CHECK(std::is_sorted(std::begin(on::operator_functions), std::end(on::operator_functions),
                       [](const auto& a, const auto& b) { return a.name < b.name; }));
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/node/scalar_functions.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("functions of numbers at their special places") {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(std::isnan(on::functions::relu()(nan)));
  CHECK(on::functions::is_positive_infinity()(inf) == 1);
  CHECK(on::functions::is_positive_infinity()(-inf) == 0);
  CHECK(on::functions::is_positive_infinity()(nan) == 0);
  CHECK(on::functions::is_negative_infinity()(-inf) == 1);
  CHECK(on::functions::sigmoid()(-1000.0) == 0);
  CHECK(on::functions::sigmoid()(1000.0) == 1);
  CHECK(on::functions::softplus()(1000.0) == 1000);
  CHECK(on::functions::round_to_even()(2.5) == 2);
  CHECK(std::isnan(on::functions::smaller()(nan, 1.0)));
  CHECK(std::isnan(on::functions::smaller()(1.0, nan)));
  CHECK(on::functions::exp_of_difference()(-inf, -inf) == 0);
}

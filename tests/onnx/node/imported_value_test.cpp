// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/node/imported_value.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

#include <string>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("long names of parameters keep their end") {
  CHECK(on::values::parameter_name("encoder.w") == "encoder.w");
  const std::string name = "a/very/long/name/of/a/parameter/that/no/store/takes/as/it/is/encoder/layer.11/attention/query/weight";
  CHECK(on::values::parameter_name(name).size() == 63);
  CHECK(on::values::parameter_name(name).ends_with("attention/query/weight"));
  CHECK(on::values::parameter_name(name) != on::values::parameter_name("b" + name));
}

TEST_CASE("values are filled if their elements are equal") {
  CHECK(on::values::is_filled(on::scalar_real(2)));
  CHECK(on::values::is_filled(on::integers_of({3, 3})));
  CHECK(!on::values::is_filled(on::integers_of({3, 4})));
  CHECK(!on::values::is_filled(on::integers_of({std::int64_t(1) << 60})));
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/program/find_operator.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string_view>
#include <utility>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("operators are found by domain and name, and no name is there twice") {
  REQUIRE(on::find_operator("", "Conv") != nullptr);
  CHECK(on::find_operator("", "Conv")->name == "Conv");
  CHECK(on::find_operator("mine", "Conv") == nullptr);
  CHECK(on::find_operator("", "NonMaxSuppression") == nullptr);
  std::set<std::pair<std::string_view, std::string_view>> names;
  for (const auto& table : on::operator_tables)
    for (const on::operator_row& row : table) CHECK(names.emplace(row.domain, row.name).second);
}

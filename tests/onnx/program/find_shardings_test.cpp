// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/program/find_shardings.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("found shardings are written, read, and planned") {
  const on::model_tensor weight = f32({8, 4}, std::vector<double>(32, 0.5)), bias = f32({4}, {1, 2, 3, 4});
  const std::string text = message_of_model({{{"MatMul", {"a", "w"}, {"p"}}, {"Add", {"p", "v"}, {"y"}}},
                                             {{"a", on::element::f32, {"batch", "8"}}},
                                             {{"y"}},
                                             {{"w", weight}, {"v", bias}}});
  const auto bytes = [](const std::string& s) { return std::span(reinterpret_cast<const std::byte*>(s.data()), s.size()); };
  const on::import_options options{.sizes = {{"batch", 6}}};
  const on::imported_program plain = on::import_program(on::parse_model(bytes(text)), "x=2", options);
  const on::found_shardings found = on::find_shardings(plain, {});
  CHECK(found.choice.view().exact);
  REQUIRE(found.tensors.size() == 3);
  CHECK(found.tensors.at("a").used() == 1);  // the batch is sharded
  CHECK(found.tensors.at("w").used() == 0);
  CHECK(found.tensors.at("v").used() == 0);

  const std::string annotated = on::annotated_model(bytes(text), plain.program.mesh(), "found", found.tensors);
  const on::imported_program p = on::import_program(on::parse_model(bytes(annotated)), "x=2", options);
  const gshard::plan_view& plan = p.program.plan();
  CHECK(plan.at(plan.outputs[0].value).layout.same_layout(found.tensors.at("a")));

  const on::imported_program fixed =
      on::import_program(on::parse_model(bytes(text)), "x=2", {.sizes = options.sizes, .shardings = {{"a", "B,I@x"}}});
  CHECK(on::find_shardings(fixed, {}).tensors.at("a").dim_of(0) == 1);
  CHECK_THROWS_AS(on::find_shardings(plain, {.memory_limit = 8}), gshard::error);
}

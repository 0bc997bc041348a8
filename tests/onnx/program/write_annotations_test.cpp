// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/program/write_annotations.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace on = gshard::onnx;
using namespace onnx_tests;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
/// The sharding of a matrix whose dims these axes shard.
gshard::sharding layout_of(const std::vector<int>& rows, const std::vector<int>& columns) {
  gshard::sharding s = gshard::sharding::replicated(2);
  for (const int axis : rows) s[0].push_back(axis);
  for (const int axis : columns) s[1].push_back(axis);
  return s;
}
/// A model of one product a b.
std::string product() {
  const on::model_tensor b = f32({4, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
  return message_of_model({{{"MatMul", {"a", "b"}, {"y"}}}, {{"a", on::element::f32, {"4", "4"}}}, {{"y"}}, {{"b", b}}});
}

}  // namespace

TEST_CASE("written shardings are read as the same ones") {
  const gshard::any_mesh mesh("x=2,y=3,z=2");
  for (const auto& [rows, columns] : std::vector<std::pair<std::vector<int>, std::vector<int>>>{
           {{}, {}}, {{0}, {}}, {{}, {1}}, {{2}, {0}}, {{1, 0}, {}}, {{0, 2}, {1}}, {{2, 0}, {1}}, {{}, {2, 1, 0}}}) {
    const std::string text = on::annotated_model(bytes_of(product()), mesh, "twelve", {{"b", layout_of(rows, columns)}});
    const on::model m = on::parse_model(bytes_of(text));
    CHECK(m.ir_version == 11);
    REQUIRE(m.configurations.size() == 1);
    CHECK(m.configurations[0].name == "twelve");
    CHECK(m.configurations[0].count == 12);
    const auto all = on::annotations_of(m, mesh, "twelve");
    REQUIRE(all.size() == 1);
    on::sharded_axes expected;
    for (const int axis : rows) expected.emplace_back(0, axis);
    for (const int axis : columns) expected.emplace_back(1, axis);
    CHECK(all.at("b") == expected);
  }
}

TEST_CASE("shardings replace those that a model had, and all else is kept") {
  const gshard::any_mesh mesh("x=2");
  const std::string once = on::annotated_model(bytes_of(product()), mesh, "one", {{"a", layout_of({0}, {})}, {"b", layout_of({}, {0})}});
  const std::string twice = on::annotated_model(bytes_of(once), mesh, "two", {{"a", layout_of({}, {0})}, {"none", layout_of({0}, {})}});
  const on::model m = on::parse_model(bytes_of(twice)), before = on::parse_model(bytes_of(product()));
  REQUIRE(m.configurations.size() == 1);
  CHECK(m.configurations[0].name == "two");
  REQUIRE(m.graph.nodes.size() == 1);
  REQUIRE(m.graph.nodes[0].placements.size() == 1);
  REQUIRE(m.graph.nodes[0].placements[0].shardings.size() == 1);
  CHECK(m.graph.nodes[0].placements[0].shardings[0].tensor == "a");
  CHECK(m.graph.nodes[0].operation == "MatMul");
  CHECK(m.graph.nodes[0].inputs == before.graph.nodes[0].inputs);
  CHECK(m.graph.initializers.at(0).shape == before.graph.initializers.at(0).shape);
  CHECK(m.opsets == before.opsets);
  // Fields that change nothing are copied byte for byte.
  CHECK(on::annotated_model(bytes_of(twice), mesh, "two", {{"a", layout_of({}, {0})}}).size() == twice.size());
}

TEST_CASE("damaged models and unknown meshes are refused") {
  const std::string whole = product();
  CHECK_THROWS_AS(on::annotated_model(bytes_of(whole).first(whole.size() - 1), gshard::any_mesh("x=2"), "one", {}), gshard::error);
  CHECK_THROWS_WITH_AS(on::annotated_model(bytes_of(whole), gshard::any_mesh("x"), "one", {}),
                       "annotations number devices: state the extents of all mesh axes", gshard::error);
}

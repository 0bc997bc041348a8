// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/program/annotations.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace on = gshard::onnx;
using namespace onnx_tests;

namespace {

using groups = std::vector<std::pair<std::int64_t, std::vector<std::int64_t>>>;

on::model_sharding sharded(const std::vector<std::int64_t>& devices, const groups& all, const std::vector<on::model_sharded_dim>& dims) {
  return {"x", devices, all, dims};
}

}  // namespace

TEST_CASE("annotations are axes of the mesh that have these devices") {
  const gshard::any_mesh mesh("x=2,y=2");
  using axes = on::sharded_axes;
  CHECK(on::axes_of(sharded({0, 1, 2, 3}, {}, {{0, {2}}, {1, {2}}}), mesh) == axes{{0, 0}, {1, 1}});
  CHECK(on::axes_of(sharded({0, 2, 1, 3}, {}, {{0, {2}}, {1, {2}}}), mesh) == axes{{0, 1}, {1, 0}});
  CHECK(on::axes_of(sharded({-1, -2}, {{-1, {0, 1}}, {-2, {2, 3}}}, {{-1, {2}}}), mesh) == axes{{-1, 0}});
  CHECK(on::axes_of(sharded({-1, -2}, {{-1, {0, 2}}, {-2, {1, 3}}}, {{-1, {2}}}), mesh) == axes{{-1, 1}});
  CHECK(on::axes_of(sharded({-1}, {{-1, {3, 2, 1, 0}}}, {}), mesh).empty());
  CHECK_THROWS_WITH_AS(on::axes_of(sharded({3, 2, 1, 0}, {}, {{0, {2}}, {1, {2}}}), mesh),
                       "the sharding of \"x\" is not one over axes of this mesh", gshard::error);
  CHECK_THROWS_WITH_AS(on::axes_of(sharded({0, 1}, {}, {{0, {2}}}), gshard::any_mesh("x")),
                       "the sharding of \"x\" is for numbered devices: state the extents of all mesh axes", gshard::error);
  CHECK_THROWS_WITH_AS(on::axes_of(sharded({0, 1, 2}, {}, {{0, {2}}}), mesh), "the sharding of \"x\" has 2 shards on 3 devices or groups",
                       gshard::error);
}

TEST_CASE("an annotated model is planned with its shardings") {
  on::model m = model_of(graph_of("Relu", {f32({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})}, 1, {}));
  m.graph.nodes[0].placements.push_back({"two", {{"y0", {0, 1}, {}, {{1, {2}}}}}});
  const on::imported_program p = on::import_program(m, "x=2");
  const gshard::value& y = p.program.plan().at(p.program.plan().outputs[0].value);
  CHECK(y.layout[1].size() == 1);
  const on::imported_program plain = on::import_program(m, "x=2", {.annotations = false});
  CHECK(plain.program.plan().at(plain.program.plan().outputs[0].value).layout.used() == 0);
}

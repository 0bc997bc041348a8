// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/node/numpy.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("extents broadcast as in numpy") {
  CHECK(on::broadcast_extents({3, 1}, {4}) == on::extent_list{3, 4});
  CHECK(on::broadcast_extents({}, {2, 1}) == on::extent_list{2, 1});
  CHECK_THROWS_WITH_AS(on::broadcast_extents({2}, {3}), "has operands [2] and [3], which do not broadcast", gshard::error);
}

TEST_CASE("reshapes of all kinds, with every sharding") {
  const std::vector<double> x{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  for (const shape& from : {shape{12}, shape{3, 4}, shape{2, 1, 6}, shape{2, 2, 3}, shape{1, 12, 1}, shape{6, 2}})
    for (const shape& to : {shape{12}, shape{4, 3}, shape{2, 6, 1, 1}, shape{3, 2, 2}, shape{1, 2, 3, 2}}) {
      graph g = graph_of("Reshape", {f32(from, x), i64({std::int64_t(to.size())}, {to.begin(), to.end()})}, 1, {});
      CHECK(wrong(model_of(g), {f32(from, x), i64({std::int64_t(to.size())}, {to.begin(), to.end()})}, {f32(to, x)}) == "");
    }
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/backend/device_group.hpp>

#include "random_cases.hpp"

#include <doctest/doctest.h>

#include <array>
#include <vector>

namespace gs = gshard;

constexpr std::array<int, 3> cube{2, 3, 4};
static_assert(gs::device_count(cube) == 24);
static_assert(gs::coordinates_of(cube, 17) == std::array<int, gs::max_axes>{1, 1, 1});
static_assert(gs::device_group(cube, 0b010, 17).member() == 1);
static_assert(gs::device_group(cube, 0b010, 17).device(2) == 21);

TEST_CASE("device_group: members are the devices that differ in the given axes, row-major") {
  for (const std::vector<int>& extents : {std::vector<int>{}, {1}, {5}, {2, 3}, {3, 1, 2}, {2, 2, 3, 2}}) {
    for (std::uint32_t axes = 0; axes < cases::n_masks(extents); ++axes) {
      for (int device = 0; device < gs::device_count(extents); ++device) {
        CAPTURE(axes);
        CAPTURE(device);
        const std::vector<int> expected = cases::members(extents, axes, device);
        const gs::device_group group(extents, axes, device);
        REQUIRE(group.size() == int(expected.size()));
        for (int m = 0; m < group.size(); ++m) CHECK(group.device(m) == expected[std::size_t(m)]);
        CHECK(group.device(group.member()) == device);
        const auto at = gs::coordinates_of(extents, device);
        int id = 0;
        for (std::size_t a = 0; a < extents.size(); ++a) id = id * extents[a] + at[a];
        CHECK(id == device);
      }
    }
  }
}

TEST_CASE("device_count: refuses what is no mesh") {
  CHECK(gs::device_count(std::vector<int>{}) == 1);
  CHECK_THROWS_WITH_AS(gs::device_count(std::vector{2, 0}), "mesh 2x0: every extent must be at least 1",
                       gs::error);
  CHECK_THROWS_AS(gs::device_count(std::vector(9, 1)), gs::error);
  CHECK_THROWS_AS(gs::device_count(std::vector(4, 100000)), gs::error);
}

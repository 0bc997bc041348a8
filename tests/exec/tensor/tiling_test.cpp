// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether blocks tile a region: finds the first element in no block or in several.
#include <gshard/exec/tensor/tiling.hpp>

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

namespace {

using gshard::detail::owned_block;
using gshard::kernel::placement;

placement box(std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t columns) {
  return {2, {rows, columns}, {row, column}, {100, 100}};
}
std::string problem(const placement& region, const std::vector<placement>& boxes) {
  std::vector<owned_block> blocks;
  for (const placement& b : boxes) blocks.push_back({7, std::int64_t(blocks.size()), b});
  return gshard::detail::problem_of_tiling(region, blocks);
}

}  // namespace

TEST_CASE("tiling: blocks that tile a region, and blocks that do not") {
  CHECK(problem(box(0, 0, 0, 5), {}) == "");
  CHECK(problem(box(2, 3, 4, 5), {box(2, 3, 4, 5)}) == "");
  CHECK(problem(box(2, 3, 4, 5), {box(2, 3, 1, 5), box(3, 3, 3, 2), box(3, 5, 3, 3)}) == "");
  CHECK(problem(box(2, 3, 4, 5), {box(2, 3, 0, 5), box(2, 3, 4, 5)}) == "");
  CHECK(problem(box(2, 3, 4, 5), {box(2, 3, 4, 4)}) == "element [2,7] is in no block");
  CHECK(problem(box(2, 3, 4, 5), {box(3, 3, 3, 5)}) == "element [2,3] is in no block");
  CHECK(problem(box(2, 3, 4, 5), {box(2, 3, 4, 5), box(5, 7, 1, 1)}) ==
        "element [5,7] is in block 0 of device 7 and in block 1 of device 7");
}

TEST_CASE("tiling: the same answer as counting") {
  std::mt19937 random(1);
  const auto up_to = [&](std::int64_t n) { return std::uniform_int_distribution<std::int64_t>(0, n)(random); };
  for (int round = 0; round < 2000; ++round) {
    std::vector<placement> boxes;
    for (std::int64_t n = up_to(3); n-- > 0;) {
      const std::int64_t row = up_to(2), column = up_to(2);
      boxes.push_back(box(row, column, up_to(3 - row), up_to(3 - column)));
    }
    std::string expected;
    for (std::int64_t i = 0; i < 3 && expected.empty(); ++i)
      for (std::int64_t j = 0; j < 3 && expected.empty(); ++j) {
        int in = 0;
        for (const placement& b : boxes)
          in += i >= b.offset[0] && i < b.offset[0] + b.extent[0] && j >= b.offset[1] && j < b.offset[1] + b.extent[1];
        if (in != 1) expected = "element [" + std::to_string(i) + "," + std::to_string(j) + "] is in " + (in == 0 ? "no block" : "block ");
      }
    CHECK(problem(box(0, 0, 3, 3), boxes).starts_with(expected));
    CHECK(problem(box(0, 0, 3, 3), boxes).empty() == expected.empty());
  }
}

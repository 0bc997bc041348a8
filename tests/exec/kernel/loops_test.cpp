// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/kernel/loops.hpp>

#include "support.hpp"

#include <algorithm>
#include <array>

namespace {

using namespace test;
using nest = ks::detail::loop_nest<2>;
using offsets = std::array<std::int64_t, 2>;

std::vector<offsets> visited(const nest& n) {
  std::vector<offsets> all;
  ks::detail::for_each_offset(n, [&](const offsets& at) { all.push_back(at); });
  return all;
}

std::vector<offsets> sorted(std::vector<offsets> v) {
  std::sort(v.begin(), v.end());
  return v;
}

// Loops over the dims of a row-major tensor, in any order, with the strides of another operand.
nest random_nest(std::mt19937& gen) {
  nest n;
  std::int64_t size = 1;
  for (std::int64_t i = pick(gen, 0, 5); i > 0; --i) {
    const std::int64_t extent = pick(gen, pick(gen, 0, 9) == 0 ? 0 : 1, 4);
    n.push({extent, {size, pick(gen, 0, 1) == 0 ? size : pick(gen, 0, 6)}});
    size *= extent;
  }
  std::shuffle(n.at.begin(), n.at.begin() + std::ptrdiff_t(n.count), gen);
  return n;
}

TEST_CASE("loops: merged and sorted nests visit the same offsets, as often") {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    const nest n = random_nest(gen);
    nest changed = n;
    const auto expected = sorted(visited(n));
    REQUIRE(std::int64_t(expected.size()) == n.iterations());
    ks::detail::merge_loops(changed);
    CHECK(sorted(visited(changed)) == expected);
    for (std::size_t i = 0; i < changed.count; ++i) {
      CHECK(changed.at[i].extent != 1);
      for (std::size_t j = 0; j < changed.count; ++j)
        CHECK((i == j || !ks::detail::mergeable(changed.at[i], changed.at[j])));
    }
    for (std::size_t operand : {0u, 1u}) {
      ks::detail::sort_loops(changed, operand);
      CHECK(sorted(visited(changed)) == expected);
      for (std::size_t i = 1; i < changed.count; ++i)
        CHECK(changed.at[i - 1].stride[operand] >= changed.at[i].stride[operand]);
    }
  }
}

TEST_CASE("loops: iterations come in order, the last loop fastest") {
  nest n;
  CHECK(visited(n) == std::vector<offsets>{{0, 0}});
  n.push({2, {10, 1}});
  n.push({3, {1, 0}});
  CHECK(visited(n) == std::vector<offsets>{{0, 0}, {1, 0}, {2, 0}, {10, 1}, {11, 1}, {12, 1}});
  CHECK(n.take_innermost().extent == 3);
  CHECK(visited(n) == std::vector<offsets>{{0, 0}, {10, 1}});
  n.push({0, {1, 1}});
  CHECK(visited(n).empty());
}

// Operands with equal strides are traversed as one row, in any order of their dims.
static_assert([] {
  nest n;
  for (const auto& [extent, stride] : {offsets{3, 4}, offsets{4, 1}, offsets{1, 99}, offsets{2, 12}})
    n.push({extent, {stride, stride}});
  ks::detail::merge_loops(n);
  return n.count == 1 && n.at[0].extent == 24 && n.at[0].stride == offsets{1, 1};
}());

}  // namespace

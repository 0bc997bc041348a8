// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/tensor/placement.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace gs = gshard;

namespace {

/// A random layout of a random tensor on a random mesh. Some axes may be unused.
struct random_case {
  std::vector<int> mesh;
  std::vector<std::int64_t> extents;
  gs::sharding layout;

  explicit random_case(std::uint32_t seed) {
    std::mt19937 gen(seed);
    const auto below = [&](int n) { return int(gen() % unsigned(n)); };
    for (int a = below(4); a >= 0; --a) mesh.push_back(1 + below(4));
    for (int d = below(4); d >= 0; --d) extents.push_back(below(4) ? 1 + below(13) : 0);
    layout = gs::sharding::replicated(int(extents.size()));
    for (int a = 0; a < int(mesh.size()); ++a)
      if (const int d = below(int(extents.size()) + 1); d < int(extents.size()))
        layout[d].insert(below(layout[d].size() + 1), a);
  }
  int devices() const { return gs::device_count(mesh); }
};

}  // namespace

TEST_CASE("every element is on as many devices as the axes that do not cut the tensor make") {
  for (std::uint32_t seed = 0; seed < 2000; ++seed) {
    CAPTURE(seed);
    const random_case c(seed);
    std::int64_t size = 1;
    for (const std::int64_t e : c.extents) size *= e;
    int copies = 1;
    for (std::size_t a = 0; a < c.mesh.size(); ++a)
      if (!((c.layout.used() >> a) & 1u)) copies *= c.mesh[a];
    std::vector<int> seen(std::size_t(size), 0);
    for (int device = 0; device < c.devices(); ++device) {
      const gs::kernel::placement p = gs::place(c.extents, c.layout, c.mesh, device);
      REQUIRE(p.rank == int(c.extents.size()));
      for (std::size_t d = 0; d < c.extents.size(); ++d) {
        REQUIRE(p.global[d] == c.extents[d]);
        REQUIRE((p.extent[d] >= 0 && p.offset[d] >= 0 && p.offset[d] + p.extent[d] <= c.extents[d]));
      }
      gs::kernel::for_each_run(p, [&](std::int64_t, std::int64_t global, std::int64_t n) {
        for (std::int64_t i = 0; i < n; ++i) ++seen[std::size_t(global + i)];
      });
    }
    CHECK(std::all_of(seen.begin(), seen.end(), [&](int n) { return n == copies; }));
  }
}

TEST_CASE(
    "blocks are ceil-sized, the last ones short or empty, each axis cutting what those before it left") {
  const gs::sharding one = [] {
    gs::sharding s = gs::sharding::replicated(1);
    s[0].push_back(0);
    return s;
  }();
  const auto block = [](const gs::sharding& s, std::int64_t extent, std::vector<int> mesh, int device) {
    const gs::kernel::placement p = gs::place(std::vector{extent}, s, mesh, device);
    return std::vector{p.offset[0], p.extent[0]};
  };
  using pair = std::vector<std::int64_t>;
  CHECK(block(one, 5, {3}, 0) == pair{0, 2});
  CHECK(block(one, 5, {3}, 2) == pair{4, 1});
  CHECK(block(one, 4, {3}, 2) == pair{4, 0});
  CHECK(block(one, 1, {4}, 3) == pair{1, 0});
  gs::sharding two = one;
  two[0].push_back(1);
  CHECK(block(two, 7, {2, 3}, 2) == pair{4, 0});  // 4 and 3 over the first axis, then 2, 2, 0 ...
  CHECK(block(two, 7, {2, 3}, 3) == pair{4, 1});  // ... and 1, 1, 1
  CHECK(block(two, 7, {2, 3}, 5) == pair{6, 1});
}

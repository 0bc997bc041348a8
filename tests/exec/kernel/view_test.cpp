// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/kernel/view.hpp>

#include "support.hpp"

using namespace test;

static_assert(ks::element_count(3, {2, 3, 4}) == 24);
static_assert(ks::element_count(0, {}) == 1);
static_assert(ks::row_major_strides(3, {2, 3, 4}) == ks::index_array{12, 4, 1});

TEST_CASE("for_each_run: pairs local and global linear indices, in order") {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    const ks::placement p = random_placement(gen);
    std::vector<std::int64_t> expected, found;
    const auto stride = ks::row_major_strides(p.rank, p.global);
    for_each_index(p.rank, p.extent, [&](const ks::index_array& index, std::int64_t) {
      expected.push_back(offset_of(p.rank, index, stride) + offset_of(p.rank, p.offset, stride));
    });
    ks::for_each_run(p, [&](std::int64_t local, std::int64_t global, std::int64_t n) {
      CHECK(local == static_cast<std::int64_t>(found.size()));
      CHECK(n > 0);
      for (std::int64_t i = 0; i < n; ++i) found.push_back(global + i);
    });
    CHECK(found == expected);
  }
}

TEST_CASE("for_each_run: a tensor that is not sharded is one run") {
  int runs = 0;
  ks::for_each_run(ks::whole(3, {2, 3, 4}), [&](std::int64_t, std::int64_t, std::int64_t n) {
    ++runs;
    CHECK(n == 24);
  });
  CHECK(runs == 1);
}

TEST_CASE("for_each_element: every element of a shard once, in order, with its global index") {
  std::vector<std::size_t> found;
  ks::for_each_element({2, {2, 2}, {1, 2}, {4, 5}}, [&](std::size_t global, std::size_t local) {
    CHECK(local == found.size());
    found.push_back(global);
  });
  CHECK(found == std::vector<std::size_t>{7, 8, 12, 13});
}

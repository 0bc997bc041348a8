// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "data/random.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <vector>

namespace tr = translate;

namespace {

// The first outputs of splitmix64 from state 0.
static_assert(tr::mix(0x9e3779b97f4a7c15ULL) == 0xe220a8397b1dcdafULL);
static_assert(tr::mix(2 * 0x9e3779b97f4a7c15ULL) == 0x6e789e6aa1b965f4ULL);
// FNV-1a's published values of "" and "foobar", mixed.
static_assert(tr::stable_hash("") == tr::mix(0xcbf29ce484222325ULL));
static_assert(tr::stable_hash("foobar") == tr::mix(0x85944171f73967e8ULL));

TEST_CASE("random: short texts spread evenly") {
  std::array<int, 16> counts{};
  for (int i = 0; i < 16000; ++i) ++counts[tr::stable_hash(std::to_string(i)) >> 60];
  for (const int count : counts) CHECK(std::abs(count - 1000) < 150);
}

TEST_CASE("random: a shuffle is a permutation, given by its seed, and all places are equally likely") {
  std::array<int, 8> first{};
  for (std::uint64_t seed = 0; seed < 8000; ++seed) {
    std::vector<int> items(8);
    std::iota(items.begin(), items.end(), 0);
    auto again = items;
    tr::stable_shuffle(std::span(items), seed);
    tr::stable_shuffle(std::span(again), seed);
    CHECK(items == again);
    CHECK(std::is_permutation(items.begin(), items.end(), std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}.begin()));
    ++first[static_cast<std::size_t>(items[0])];
  }
  for (const int count : first) CHECK(std::abs(count - 1000) < 150);
}

}  // namespace

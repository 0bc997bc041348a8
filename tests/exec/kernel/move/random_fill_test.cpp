// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/kernel/move/random_fill.hpp>

#include "../support.hpp"

#include <set>

namespace {

using namespace test;
using ks::detail::random_batch;

// Also counters of more than 32 bits: the block is the index divided by 4.
constexpr std::uint64_t carry = std::uint64_t{1} << 34;

gshard::random_key random_key(std::mt19937& gen) {
  return {std::uint64_t{gen()} << 32 | gen(), std::uint32_t(gen()), std::uint32_t(gen())};
}

TEST_CASE("random fill: a batch is the blocks one by one") {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    const gshard::random_key key = random_key(gen);
    const std::uint64_t first = seed % 2 == 0 ? gen() : carry / 4 - gen() % random_batch::blocks;
    const random_batch batch(key, first);
    bool same = true;
    for (std::size_t l = 0; l < random_batch::blocks; ++l)
      for (std::size_t w = 0; w < 4; ++w)
        same = same && batch.words[w][l] == gshard::random_words(key, first + l)[w];
    CHECK(same);
  }
}

TEST_CASE("random fill: the pieces are all of the range, in order, and every number is that of its index") {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    const gshard::random_key key = random_key(gen);
    const std::uint64_t first = seed % 3 == 0 ? carry - gen() % 2000 : gen() % 5000;
    const std::uint64_t count = seed % 4 == 0 ? gen() % 5 : gen() % 5000;
    std::uint64_t next = first;
    bool same = true;
    ks::detail::for_uniform01(key, first, count, [&](std::uint64_t begin, std::uint64_t n, const float* u) {
      CHECK(begin == next);
      for (std::uint64_t i = 0; i < n; ++i) same = same && u[i] == gshard::uniform01(key, begin + i);
      next += n;
    });
    CHECK(next == first + count);
    CHECK(same);
  }
}

TEST_CASE("random fill: seed, step and operation all tell streams apart") {
  const gshard::random_key key{1, 2, 3};
  std::set<std::uint32_t> words;
  for (const gshard::random_key& k : {key,
                                      {2, 2, 3},
                                      {1 + (std::uint64_t{1} << 32), 2, 3},
                                      {1, 3, 3},
                                      {1, 2, 4},
                                      gshard::random_key{1, 3, 2}})
    words.insert(random_batch(k, 7).words[0][0]);
  CHECK(words.size() == 6);
}

}  // namespace

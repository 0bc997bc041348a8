// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/base/random.hpp>

#include <doctest/doctest.h>

namespace gs = gshard;

namespace {

using words = std::array<std::uint32_t, 4>;

// Known answers of the Random123 distribution (kat_vectors).
static_assert(gs::philox4x32({0, 0, 0, 0}, {0, 0}) == words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(gs::philox4x32({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}) ==
              words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(gs::philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
              words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});

static_assert(gs::to_uniform01(0) == 0.0F);
static_assert(gs::to_uniform01(~0U) < 1.0F);

TEST_CASE("random: an index has the same number alone and in its block") {
  const gs::random_key key{0x123456789abcdefULL, 7, 3};
  for (std::uint64_t block : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 40}) {
    const auto four = gs::uniform01_block(key, block);
    for (std::uint64_t i = 0; i < 4; ++i) CHECK(four[i] == gs::uniform01(key, 4 * block + i));
  }
}

TEST_CASE("random: seed, step and op name different streams") {
  const gs::random_key key{1, 2, 3};
  CHECK(gs::random_words(key, 0) != gs::random_words({1ULL << 32 | 1, 2, 3}, 0));
  CHECK(gs::random_words(key, 0) != gs::random_words({1, 3, 3}, 0));
  CHECK(gs::random_words(key, 0) != gs::random_words({1, 2, 4}, 0));
  CHECK(gs::random_words(key, 0) != gs::random_words(key, 1));
}

TEST_CASE("random: uniform numbers have the moments of the uniform distribution") {
  const gs::random_key key{42, 0, 0};
  constexpr int n = 1 << 16;
  double sum = 0, square = 0, neighbors = 0;
  std::array<int, 16> histogram{};
  for (std::uint64_t i = 0; i < n; ++i) {
    const float u = gs::uniform01(key, i);
    REQUIRE(u >= 0.0F);
    REQUIRE(u < 1.0F);
    sum += u;
    square += static_cast<double>(u) * u;
    neighbors += (u - 0.5) * (gs::uniform01(key, i + 1) - 0.5);
    ++histogram[static_cast<std::size_t>(u * 16)];
  }
  CHECK(sum / n == doctest::Approx(0.5).epsilon(0.01));
  CHECK(square / n == doctest::Approx(1.0 / 3).epsilon(0.01));
  CHECK(neighbors / n == doctest::Approx(0.0).epsilon(0.002));
  for (int count : histogram) CHECK(count == doctest::Approx(n / 16).epsilon(0.06));
}

}  // namespace

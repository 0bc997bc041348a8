// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Counter-based random numbers (Philox4x32-10), the same for every sharding.

#include <gshard/core/base/compiler.hpp>

#include <array>
#include <cstdint>

namespace gshard { inline namespace v0 {

/// Philox4x32-10, the counter-based generator of Salmon et al. (SC'11): 128 random bits for each counter.
constexpr std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(p1),
               static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(p0)};
    key = {key[0] + 0x9E3779B9U, key[1] + 0xBB67AE85U};
  }
  return counter;
}

/// The key of one stream of random numbers: the run, the training step, the operation. The numbers of a stream are indexed by global
/// row-major position in the tensor, so they do not depend on its sharding.
struct random_key {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  std::uint32_t op = 0;

  friend constexpr bool operator==(const random_key&, const random_key&) = default;
};

/// The random words of the indices 4 * block .. 4 * block + 3.
constexpr std::array<std::uint32_t, 4> random_words(random_key key, std::uint64_t block) noexcept {
  return philox4x32(
      {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), key.step, key.op},
      {static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)});
}

/// The upper 24 bits of a word as a float in [0, 1).
constexpr float to_uniform01(std::uint32_t word) noexcept {
  return static_cast<float>(static_cast<std::int32_t>(word >> 8)) * 0x1p-24F;
}

/// The uniform numbers of the indices 4 * block .. 4 * block + 3.
constexpr std::array<float, 4> uniform01_block(random_key key, std::uint64_t block) noexcept {
  const auto words = random_words(key, block);
  return {to_uniform01(words[0]), to_uniform01(words[1]), to_uniform01(words[2]), to_uniform01(words[3])};
}

/// The uniform number in [0, 1) at `index` of the stream.
constexpr float uniform01(random_key key, std::uint64_t index) noexcept {
  return to_uniform01(random_words(key, index / 4)[index % 4]);
}

}}  // namespace gshard::v0

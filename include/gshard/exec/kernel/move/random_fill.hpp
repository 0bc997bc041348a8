// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Uniform random numbers for consecutive global indices, in vectorized batches.

#include <gshard/core/base/random.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace kernel { namespace detail {

/// random_words of 16 blocks at once: words[w][l] is word w of block `first + l`.
struct random_batch {
  static constexpr std::size_t blocks = 16;
  std::uint32_t words[4][blocks];

  random_batch(random_key key, std::uint64_t first) {
    auto& [c0, c1, c2, c3] = words;
    for (std::size_t l = 0; l < blocks; ++l) {
      c0[l] = static_cast<std::uint32_t>(first + l);
      c1[l] = static_cast<std::uint32_t>((first + l) >> 32);
      c2[l] = key.step;
      c3[l] = key.op;
    }
    auto k0 = static_cast<std::uint32_t>(key.seed), k1 = static_cast<std::uint32_t>(key.seed >> 32);
    for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9U, k1 += 0xBB67AE85U)
      for (std::size_t l = 0; l < blocks; ++l) {
        const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c0[l];
        const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * c2[l];
        c0[l] = static_cast<std::uint32_t>(p1 >> 32) ^ c1[l] ^ k0;
        c1[l] = static_cast<std::uint32_t>(p1);
        c2[l] = static_cast<std::uint32_t>(p0 >> 32) ^ c3[l] ^ k1;
        c3[l] = static_cast<std::uint32_t>(p0);
      }
  }
};

/// Calls f(begin, n, u) for consecutive pieces of [first, first + count): u[i] is uniform01(key, begin + i).
template <class F>
void for_uniform01(random_key key, std::uint64_t first, std::uint64_t count, F f) {
  constexpr std::uint64_t batch_size = 4 * random_batch::blocks, piece = 16 * batch_size;
  std::array<float, piece> u;
  const std::uint64_t end = first + count;
  for (std::uint64_t start = first / 4 * 4; start < end; start += piece) {
    const std::uint64_t stop = std::min(end, start + piece), begin = std::max(first, start);
    for (std::uint64_t i = start; i < stop; i += batch_size) {
      const random_batch batch(key, i / 4);
      float* to = u.data() + (i - start);
      for (std::size_t l = 0; l < random_batch::blocks; ++l)
        for (std::size_t w = 0; w < 4; ++w) to[4 * l + w] = to_uniform01(batch.words[w][l]);
    }
    f(begin, stop - begin, u.data() + (begin - start));
  }
}

}}}}  // namespace gshard::v0::kernel::detail

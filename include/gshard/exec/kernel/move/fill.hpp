// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Fills a shard with normal or uniform random numbers that depend on the global index alone.

#include <gshard/core/base/random.hpp>
#include <gshard/exec/kernel/move/random_fill.hpp>
#include <gshard/exec/kernel/view.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace gshard { inline namespace v0 { namespace kernel {

/// The standard normal numbers at the indices 4 * block .. 4 * block + 3, by Box and Muller.
inline std::array<float, 4> normal_block(random_key key, std::uint64_t block) {
  const auto words = random_words(key, block);
  std::array<float, 4> z;
  for (std::size_t pair = 0; pair < 4; pair += 2) {
    const float radius =
        std::sqrt(-2 * std::log(to_uniform01(words[pair]) + 0x1p-24F));  // uniform in (0, 1]
    const float angle = 6.28318531F * to_uniform01(words[pair + 1]);
    z[pair] = radius * std::cos(angle);
    z[pair + 1] = radius * std::sin(angle);
  }
  return z;
}

/// out = stddev * the standard normal number at the global linear index of the stream.
template <class T>
void fill_normal(T* out, const placement& at, double stddev, random_key key) {
  using number = std::conditional_t<(sizeof(T) < sizeof(float)), float, T>;  // half precision: the numbers of float, rounded
  for_each_run(at, [&](std::int64_t local, std::int64_t global, std::int64_t n) {
    std::array<float, 4> z{};
    for (std::int64_t i = 0; i < n; ++i) {
      const auto index = std::uint64_t(global + i);
      if (i == 0 || index % 4 == 0) z = normal_block(key, index / 4);
      out[local + i] = T(number(stddev) * number(z[index % 4]));
    }
  });
}

/// out = uniform01 at the global linear index of the stream.
template <class T>
void fill_uniform(T* out, const placement& at, random_key key) {
  for_each_run(at, [&](std::int64_t local, std::int64_t global, std::int64_t count) {
    T* const to = out + local - global;
    detail::for_uniform01(key, std::uint64_t(global), std::uint64_t(count), [&](std::uint64_t begin, std::uint64_t n, const float* u) {
      std::copy_n(u, n, to + begin);
    });
  });
}

}}}  // namespace gshard::v0::kernel

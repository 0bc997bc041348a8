// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace translate {

/// The finaliser of splitmix64: a bijection of 64-bit words whose outputs look independent.
constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// A hash that is the same on every machine and in every version: FNV-1a, then mix(), because FNV-1a alone distributes short texts badly
/// over the high bits.
constexpr std::uint64_t stable_hash(std::string_view text, std::uint64_t seed = 0) {
  std::uint64_t h = 0xcbf29ce484222325ULL ^ mix(seed);
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return mix(h);
}

/// Fisher-Yates with splitmix64: unlike std::shuffle, the same order everywhere for one seed.
template <class T>
constexpr void stable_shuffle(std::span<T> items, std::uint64_t seed) {
  std::uint64_t state = mix(seed + 0x9e3779b97f4a7c15ULL);
  for (std::size_t i = items.size(); i > 1; --i) {
    state += 0x9e3779b97f4a7c15ULL;
    std::swap(items[i - 1], items[static_cast<std::size_t>(mix(state) % i)]);
  }
}

}  // namespace translate

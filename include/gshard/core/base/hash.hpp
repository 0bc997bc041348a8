// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The FNV-1a hash, in 32 or 64 bits.

#include <gshard/core/base/compiler.hpp>

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace gshard { inline namespace v0 {

/// The FNV-1a hash of Fowler, Noll and Vo, in words of 32 or 64 bits. It distinguishes descriptions, and spreads names over numbers. It is
/// the same on every machine. It is not cryptographic.
template <class Word>
class fnv1a {
  static_assert(std::is_same_v<Word, std::uint32_t> || std::is_same_v<Word, std::uint64_t>);

 public:
  /// Adds the bytes of a text.
  constexpr fnv1a& add(std::string_view text) {
    Word value = value_;
    for (const char c : text) value = Word((value ^ static_cast<std::uint8_t>(c)) * prime);
    value_ = value;
    return *this;
  }
  /// Adds a number in one step, and folds the upper half of the hash into the lower half. Products carry only upward.
  constexpr fnv1a& add(std::uint64_t number) requires(sizeof(Word) == 8) {
    value_ = (value_ ^ number) * prime;
    value_ ^= value_ >> 32;
    return *this;
  }
  /// The hash of everything added so far.
  constexpr Word value() const { return value_; }

 private:
  static constexpr bool wide = sizeof(Word) == 8;
  static constexpr Word prime = Word(wide ? 1099511628211u : 16777619u);
  Word value_ = Word(wide ? 14695981039346656037u : 2166136261u);
};

}}  // namespace gshard::v0

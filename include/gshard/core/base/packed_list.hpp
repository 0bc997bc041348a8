// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Short lists of small integers in one machine word, for shardings, equations and shapes.

#include <gshard/core/base/compiler.hpp>

#include <cstdint>

namespace gshard { inline namespace v0 {

/// A short list of small non-negative integers in one machine word: entry i is in bits [i*Bits, (i+1)*Bits). Copying or comparing it costs
/// the constexpr evaluator one or two operations, instead of one per entry. Frequently used functions avoid calls in loops, because calls
/// cost most there.
template <int Bits, class Word>
struct packed_list {
  static constexpr int capacity = int(sizeof(Word)) * 8 / Bits;
  static constexpr int width = Bits;
  static constexpr int largest = (1 << Bits) - 1;

  Word bits = 0;
  std::uint8_t count = 0;

  constexpr int size() const { return count; }
  constexpr bool empty() const { return count == 0; }
  constexpr bool full() const { return count == capacity; }
  constexpr int operator[](int i) const { return int((bits >> (i * Bits)) & Word(largest)); }
  constexpr int front() const { return (*this)[0]; }
  constexpr int back() const { return (*this)[count - 1]; }

  constexpr void push_back(int v) {
    bits = Word(bits | (Word(v) << (count * Bits)));
    ++count;
  }
  constexpr void pop_back() {
    --count;
    bits = Word(bits & ~(Word(largest) << (count * Bits)));
  }
  constexpr void set(int i, int v) {
    bits = Word((bits & ~(Word(largest) << (i * Bits))) | (Word(v) << (i * Bits)));
  }
  constexpr void erase(int at) {
    packed_list rest;
    for (int i = 0; i < count; ++i)
      if (i != at) rest.push_back((*this)[i]);
    *this = rest;
  }
  constexpr void insert(int at, int v) {
    packed_list longer;
    for (int i = 0; i <= count; ++i) {
      if (i == at) longer.push_back(v);
      if (i < count) longer.push_back((*this)[i]);
    }
    *this = longer;
  }
  constexpr int find(int v) const {
    Word left = bits;
    for (int i = 0; i < count; ++i, left = Word(left >> Bits))
      if (int(left & Word(largest)) == v) return i;
    return -1;
  }
  constexpr packed_list reversed() const {
    packed_list r;
    for (int i = count; i-- > 0;) r.push_back((*this)[i]);
    return r;
  }
  /// The same as ==, in one call.
  constexpr bool same(const packed_list& other) const { return bits == other.bits && count == other.count; }
  constexpr bool contains(int v) const { return find(v) >= 0; }
  constexpr bool is_prefix_of(const packed_list& longer) const {
    if (count > longer.count) return false;
    if (count == 0) return true;
    const Word low = count == capacity ? Word(~Word(0)) : Word((Word(1) << (count * Bits)) - 1);
    return (longer.bits & low) == bits;
  }
  /// The number of equal entries at the start.
  constexpr int common_prefix(const packed_list& other) const {
    int n = 0;
    Word differing = bits ^ other.bits;
    for (; n < count && n < other.count && (differing & Word(largest)) == 0; ++n) differing = Word(differing >> Bits);
    return n;
  }
  constexpr packed_list prefix(int n) const {
    packed_list p = *this;
    if (n >= count) return p;
    p.bits = Word(bits & ((Word(1) << (n * Bits)) - 1));
    p.count = std::uint8_t(n);
    return p;
  }
  /// One bit for each value that occurs.
  constexpr std::uint32_t mask() const {
    std::uint32_t m = 0;
    Word left = bits;
    for (int i = 0; i < count; ++i, left = Word(left >> Bits)) m |= 1u << (left & Word(largest));
    return m;
  }
  constexpr bool operator==(const packed_list&) const = default;
};

/// Mesh axes of one tensor dim (major to minor), or the factor of each dim of an operand.
using short_list = packed_list<4, std::uint32_t>;
/// The dims of a tensor, as indices into a program's table of dims.
using dim_list = packed_list<8, std::uint64_t>;

/// Tensors have at most this many dims.
inline constexpr int max_rank = 8;
static_assert(short_list::capacity == max_rank && dim_list::capacity == max_rank);

}}  // namespace gshard::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/trace/builder.hpp>
#include <gshard/trace/map.hpp>

// Conditions are tensors of zeros and ones. Templates, so that their functions cost only programs that use them.
namespace gshard { inline namespace v0 {

/// 1 where a < b, else 0; operands broadcast as those of map.
template <class = void>
constexpr symbol less(here a, symbol b) {
  return map<[](auto x, auto y) { return x < y ? decltype(x)(1) : decltype(x)(0); }>(a, b);
}
/// 1 where a == b, else 0.
template <class = void>
constexpr symbol equal(here a, symbol b) {
  return map<[](auto x, auto y) { return x == y ? decltype(x)(1) : decltype(x)(0); }>(a, b);
}
/// a where the condition is not 0, else b; all of one element type, broadcast as operands of map. No gradient flows into the condition.
/// Communicates nothing where they lie alike.
template <class = void>
constexpr symbol select(here condition, symbol a, symbol b) {
  return map<[](auto c, auto x, auto y) { return c == decltype(c)(0) ? y : x; }>(condition, a, b);
}

}}  // namespace gshard::v0

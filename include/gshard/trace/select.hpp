// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/trace/builder.hpp>
#include <gshard/trace/map.hpp>
#include <gshard/trace/shape.hpp>

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

/// body applied Count times to x. Where x is annotated, the result of every turn lies as x does (a loop-invariant sharding). `body`: symbol
/// -> symbol of the same dims and type. The turns are written out in the plan, so gradients need no stack.
/// Communicates what the body does, and what brings its result to the layout of x. Compile time: the dims.
template <int Count, class Body>
constexpr symbol repeat(here x, Body body) {
  static_assert(Count >= 0, "gshard: a body is repeated a number of times");
  symbol state = x;
  for (int i = 0; i < Count && !x.owner->failed(); ++i) {
    const symbol next = body(state);
    if (x.owner->failed()) break;
    const value& start = x.get();
    if (next.get().dims != start.dims || next.get().type != start.type) x.owner->fail(fault::dims_differ, "repeat", {}, i, 0);
    const bool is_annotated = !(start.layout == sharding::unconstrained(start.rank()));
    state = is_annotated ? detail::emit_annotate(next, start.layout) : next;
  }
  return state;
}

}}  // namespace gshard::v0

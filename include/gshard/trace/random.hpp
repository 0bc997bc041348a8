// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Dropout, with random numbers that do not depend on the sharding.

#include <gshard/trace/builder.hpp>

#include <cstdint>

namespace gshard { inline namespace v0 {

namespace detail {
constexpr symbol emit_dropout(symbol x, double rate, std::int32_t key) {
  builder& b = *x.owner;
  if (!require_real(b, "dropout", {x})) return b.nothing();
  sharding_rule rule;
  rule.in[0] = rule.out[0] = counting(x.rank());
  return {&b, b.add_node(op::dropout, {x.id}, rule, {.key = key, .rate = rate}, {{x.get().dims, x.get().type}})};
}
}  // namespace detail

/// dropout(x, rate)[i] = x[i] / (1 - rate) where the random number at (seed, step, operation, global index i) is at least `rate`, else 0.
/// The same elements drop with every sharding. A rate of 0 is the identity.
/// Shapes: any -> the same.
/// Communicates: nothing.
/// Compile time: a real element type.
/// Throws: nothing.
/// @see random.hpp
constexpr symbol dropout(here x, double rate) {
  if (rate <= 0 || x.owner->failed()) return x;
  return detail::emit_dropout(x, rate, x.owner->next_random_key());
}

}}  // namespace gshard::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Dropout sets random elements to zero. Which ones does not depend on the sharding.

#include <gshard/core/grad/differentiator.hpp>
#include <gshard/core/ir/attributes.hpp>
#include <gshard/core/ir/op.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>

#include <cstdint>

namespace gshard { inline namespace v0 {

namespace op {
inline constexpr operation dropout{.id = 39, .name = "dropout", .elementwise = true, .spreads = propagation::first,
    .linear = linearity::one_operand, .overwrites = 0};
}  // namespace op

struct dropout_attributes {
  double rate = 0;

  static constexpr void each(auto& all, auto f) { f("rate", all.rate); }
};

namespace detail {

constexpr void dropout_gradient(differentiator& d, const node& n);
inline constexpr operation_rules dropout_rules{.of = op::dropout, .gradient = dropout_gradient};

constexpr symbol emit_dropout(symbol x, double rate, std::int32_t key) {
  builder& b = *x.owner;
  if (!require_real(b, "dropout", {x})) return b.nothing();
  sharding_rule rule;
  rule.in[0] = rule.out[0] = counting(x.rank());
  return {&b, b.add_node(b.use(dropout_rules), {x.id}, rule, {.key = key, .own = dropout_attributes{rate}},
                         {{x.get().dims, x.get().type}})};
}

/// The gradient, with the same elements set to zero.
constexpr void dropout_gradient(differentiator& d, const node& n) {
  d.add(n.input(0), emit_dropout(d.gradient(n), own<dropout_attributes>(n).rate, n.attr.key));
}

}  // namespace detail

/// dropout(x, rate)[i] = x[i] / (1 - rate) where the random number at (seed, step, operation, global index i) is at least `rate`, else 0.
/// The same elements drop with every sharding. A rate of 0 is the identity.
/// Shapes: any -> the same.
/// Communicates: nothing.
/// Compile time: a real element type.
/// Throws: nothing.
/// @see uniform
constexpr symbol dropout(here x, double rate) {
  if (rate <= 0 || x.owner->failed()) return x;
  return detail::emit_dropout(x, rate, x.owner->next_random_key());
}

GSHARD_TAKES(dropout, (detail::call<2, symbol, double>::fits<Given...>), "dropout(x, rate) takes a tensor of a program and a number")

}}  // namespace gshard::v0

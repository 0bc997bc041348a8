// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Checks in each run that all elements of a tensor are finite: check_finite.

#include <gshard/core/grad/differentiator.hpp>
#include <gshard/core/ir/op.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>

namespace gshard { inline namespace v0 {

namespace op {
inline constexpr operation check_finite{.id = 23, .name = "check_finite", .elements = reals | complexes, .checks = true,
    .elementwise = true, .piecewise = true, .spreads = propagation::first, .overwrites = 0};
inline constexpr operation count_not_finite{.id = 24, .name = "count_not_finite", .counts_devices = true};
inline constexpr operation sum_of_squares{.id = 25, .name = "sum_of_squares", .counts_devices = true};
}  // namespace op

namespace detail {

constexpr void check_finite_gradient(differentiator& d, const node& n);
inline constexpr operation_rules check_finite_rules{.of = op::check_finite, .gradient = check_finite_gradient};

constexpr void check_finite_gradient(differentiator& d, const node& n) { d.add(n.input(0), d.gradient(n)); }

}  // namespace detail

/// check_finite(x, "hidden") is x. A run in which x has NaN or an infinity throws not_finite_error on every process. Its text has the name,
/// the device, the step, and the global index and value of the first such element. Gradients pass unchecked. Only a tensor that the program
/// uses is checked: use the result in place of x.
/// Shapes: any -> the same.
/// Communicates: completes x if it is a partial sum. The processes agree once more in each run.
/// Compile time: a real or complex element type.
/// Throws: `not_finite_error`, on every process, before parameters are updated.
/// @see not_finite, map
[[nodiscard]] constexpr symbol check_finite(here x, const char* name) {
  builder& b = *x.owner;
  if (!detail::require_elements(b, op::check_finite, "check_finite", {x})) return b.nothing();
  sharding_rule rule;
  rule.in[0] = rule.out[0] = detail::counting(x.rank());
  return {&b, b.add_node(b.use(detail::check_finite_rules), {x.id}, rule, {.label = name}, {{x.get().dims, x.get().type}})};
}

namespace detail {
/// op::count_not_finite: 0 if all elements of x are finite, otherwise the number of devices whose shard has others.
constexpr symbol emit_count_not_finite(symbol x) {
  builder& b = *x.owner;
  if (!require_elements(b, op::count_not_finite, "count_not_finite", {x})) return b.nothing();
  sharding_rule rule;
  rule.in[0] = counting(x.rank());
  return {&b, b.add_node(op::count_not_finite, {x.id}, rule, {}, {{dim_list{}, x.get().type}})};
}
/// op::sum_of_squares: the sum of the squares of all elements of x.
constexpr symbol emit_sum_of_squares(symbol x) {
  builder& b = *x.owner;
  if (!require_elements(b, op::sum_of_squares, "sum_of_squares", {x})) return b.nothing();
  sharding_rule rule;
  rule.in[0] = counting(x.rank());
  return {&b, b.add_node(op::sum_of_squares, {x.id}, rule, {}, {{dim_list{}, x.get().type}})};
}
}  // namespace detail

GSHARD_TAKES(check_finite, (detail::call<2, symbol, const char*>::fits<Given...>),
             "check_finite(x, \"hidden\") takes a tensor of a program and a name for errors")

}}  // namespace gshard::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The indices along a dim, as a tensor: iota.

#include <gshard/core/base/fixed_string.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/parameter_scope.hpp>

namespace gshard { inline namespace v0 {

namespace detail {

/// op::iota: the index along a dim, for a tensor of these dims.
constexpr symbol emit_iota(builder& b, const dim_list& dims, int along) {
  if (b.failed()) return b.nothing();
  sharding_rule rule;
  rule.out[0] = counting(dims.size());
  return {&b, b.add_node(op::iota, {}, rule, {.dim = along}, {{dims, dtype::i32}})};
}

}  // namespace detail

/// iota<"TU">(m)[t, u] = t, or u with along = 1.
/// Shapes: the dims of the letters, int32.
/// Communicates: nothing; every device computes its shard.
/// Compile time: that the program knows the letters.
/// Throws: nothing.
/// @see cast
template <fixed_string Letters>
constexpr symbol iota(const parameter_scope& m, int along = 0) {
  builder& b = m.owner();
  if (b.failed()) return b.nothing();
  return detail::emit_iota(b, b.dims_of(Letters.view(), "iota"), along);
}

template <fixed_string Letters = "", class... Given>
  requires(detail::left_out<Letters> || !detail::call<1, parameter_scope, int>::fits<Given...>)
constexpr auto iota(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: iota<\"TU\">(m, along = 0) takes the letters of dims, the first argument of the model and a dim");
  return detail::refused(given...);
}

}}  // namespace gshard::v0

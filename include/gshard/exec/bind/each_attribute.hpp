// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The list of a node's attributes by name, for code that compares or stores all of them.

#include <gshard/core/ir/attributes.hpp>

namespace gshard { inline namespace v0 { namespace detail {

/// Calls f(name, member) for each attribute that is a number, a flag or an enumeration. `member`: a pointer to the member. The others are
/// functions, a label, the operation's own attributes, and dims.
template <class F>
constexpr void for_each_attribute(F f) {
  f("dim", &attributes::dim);
  f("axes", &attributes::axes);
  f("moves", &attributes::moves);
  f("ring_operand", &attributes::ring_operand);
  f("window", &attributes::window);
  f("key", &attributes::key);
  f("loop", &attributes::loop);
  f("combine", &attributes::combine);
  f("change", &attributes::change);
  f("if_not_finite", &attributes::if_not_finite);
  f("reverse", &attributes::reverse);
  f("of_blocks", &attributes::of_blocks);
  f("by_blocks", &attributes::by_blocks);
  f("defers_sums", &attributes::defers_sums);
  f("may_move", &attributes::may_move);
  f("gradient_as_operand", &attributes::gradient_as_operand);
  f("rounds_to_bf16", &attributes::rounds_to_bf16);
  f("inside", &attributes::inside);
  f("fill", &attributes::fill);
  f("factor", &attributes::factor);
}

/// The binding has a name for each member, so that a new one is not forgotten above.
constexpr void count_attributes(const attributes& all) {
  [[maybe_unused]] const auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, function, custom,
                                label, own, dims] = all;
}

}}}  // namespace gshard::v0::detail

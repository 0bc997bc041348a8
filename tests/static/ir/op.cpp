// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ir/op.hpp>

#include <cstddef>
#include <iterator>

namespace gs = gshard;
using gs::op;

namespace {

static_assert(std::size(gs::op_table) == std::size_t(op::count_));
static_assert(gs::name(op::einsum) == "einsum" &&
              gs::name(op::combine_weight_grad) == "combine_weight_grad" &&
              gs::name(op::collective_permute) == "collective_permute");

// Each name is unique.
static_assert([] {
  for (const gs::op_traits& a : gs::op_table)
    for (const gs::op_traits& b : gs::op_table)
      if (a.name.empty() || ((a.name == b.name) != (a.kind == b.kind))) return false;
  return true;
}());

// Traits that exclude or imply each other.
constexpr bool all_of(auto holds) {
  for (const gs::op_traits& t : gs::op_table)
    if (!holds(t)) return false;
  return true;
}
static_assert(all_of([](const gs::op_traits& t) { return !t.collective || t.reshards || t.product; }));  // moves tensors, or loops over one
static_assert(all_of([](const gs::op_traits& t) { return !t.alias || (t.overwrites < 0 && !t.collective); }));  // has no storage of its own
static_assert(all_of([](const gs::op_traits& t) { return !t.only_moves || (!t.product && !t.elementwise); }));
static_assert(all_of([](const gs::op_traits& t) { return !t.control || (!t.alias && !t.collective && !gs::may_fail(t.kind)); }));
static_assert(all_of([](const gs::op_traits& t) { return !t.elementwise || t.spreads != gs::propagation::after_elementwise; }));
static_assert(all_of([](const gs::op_traits& t) { return !t.taps || t.windowed > 0; }));
static_assert(all_of([](const gs::op_traits& t) { return t.lines == gs::line_dim::absent || !t.follows_result; }));

}  // namespace

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/all_operations.hpp>
#include <gshard/core/ir/op.hpp>

#include <cstddef>
#include <iterator>
#include <type_traits>

namespace gs = gshard;
namespace op = gs::op;

namespace {

// Moves are listed by their index. Each collective is one.
static_assert([] {
  for (std::size_t i = 0; i < std::size(gs::move_operations); ++i)
    if (gs::move_operations[i]->move != int(i)) return false;
  std::size_t moves = 0;
  for (const gs::op_ref kind : gs::all_operations) {
    if ((kind->collective || kind->reshards) != (kind->move >= 0)) return false;
    moves += kind->move >= 0;
  }
  return moves == std::size(gs::move_operations);
}());
static_assert(gs::op_ref() == op::none && gs::op_ref() != op::einsum && gs::op_ref(op::map) == op::map && gs::op_ref(op::einsum) < op::map);
static_assert(!std::is_copy_constructible_v<gs::operation> && !std::is_convertible_v<gs::operation, gs::op_ref>);
static_assert(gs::name(op::einsum) == "einsum" &&
              gs::name(op::combine_weight_grad) == "combine_weight_grad" &&
              gs::name(op::collective_permute) == "collective_permute");

// Traits that exclude or imply each other.
constexpr bool all_of(auto holds) {
  for (const gs::op_ref t : gs::all_operations)
    if (!holds(t)) return false;
  return true;
}
static_assert(all_of([](gs::op_ref t) { return !t->collective || t->reshards || t->product; }));  // moves tensors, or loops over one
static_assert(all_of([](gs::op_ref t) { return !t->alias || (t->overwrites < 0 && !t->collective); }));  // has no storage of its own
static_assert(all_of([](gs::op_ref t) { return !t->only_moves || (!t->product && !t->elementwise); }));
static_assert(all_of([](gs::op_ref t) { return !t->control || (!t->alias && !t->collective && !gs::may_fail(t)); }));
static_assert(all_of([](gs::op_ref t) { return !t->elementwise || t->spreads != gs::propagation::after_elementwise; }));
static_assert(all_of([](gs::op_ref t) { return !t->taps || t->windowed > 0; }));
static_assert(all_of([](gs::op_ref t) { return t->lines == gs::line_dim::absent || !t->follows_result; }));

}  // namespace

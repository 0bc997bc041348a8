// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The index of the largest or smallest element along a dim: argmax and argmin.

#include <gshard/core/base/fixed_string.hpp>
#include <gshard/core/grad/differentiator.hpp>
#include <gshard/core/ir/equation.hpp>
#include <gshard/core/ir/op.hpp>
#include <gshard/core/ir/reduction.hpp>
#include <gshard/core/pass/decompose_cost.hpp>
#include <gshard/core/pass/decomposer.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/ops/along/sort.hpp>
#include <gshard/ops/reduce/reduce.hpp>

#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 {

namespace op {
inline constexpr operation argmax{.id = 4, .name = "argmax", .lines = line_dim::attribute,
    .after_extremum = true};
}  // namespace op

namespace detail {

/// The best element of every block with its index, then the best of these.
constexpr void argmax_by_blocks(decomposer& d, const node& n, int at) {
  builder& b = d.owner();
  const symbol x = d.in(n, 0);
  const bool largest = d.maker_of(n, 1).attr.combine == reduction::max;
  const sorted blocks = emit_best_of_blocks(d, x, at, 1, largest, true);
  node merge = b.program.nodes.back();
  merge.attr.of_blocks = false;
  merge_blocks(merge, blocks, at);
  dim_list dims = x.get().dims;
  dims.set(at, b.fixed_dim(1));
  b.add_node(op::top_k, {blocks.values.id, blocks.ids.id}, merge.rule, merge.attr, {{dims, x.get().type}, {dims, dtype::i32}});
  const sharding whole = x.get().layout.without(x.get().layout[at].mask());
  d.set_sharding(b.result_of_last(0), whole);
  d.replace_result(n, 0, emit_squeeze(d.set_sharding(b.result_of_last(1), whole), at));
}
/// The extremum of every line, then the smallest index of an element that equals it: two reductions. @see is_best_by_blocks
constexpr std::int64_t argmax_cost_of_reductions(const decompose_cost& cost) {
  return cost.sum_of_lines() + cost.moved(cost.result(), cost.partial_rows());
}
/// An index has no gradient.
constexpr void argmax_gradient(differentiator&, const node&) {}
inline constexpr operation_rules argmax_rules{
    .of = op::argmax, .gradient = argmax_gradient, .by_blocks = argmax_by_blocks, .cost_by_blocks = argmax_cost_of_reductions};

/// op::argmax: the first index along `along` at which x equals m, its extremum over that dim.
constexpr symbol emit_argmax(symbol x, reduction what, short_list factors, const short_list& output, std::string_view text) {
  builder& b = *x.owner;
  if (!b.failed()) b.place.is_explicit = b.says_may_move(x);  // allows implicit reshards if x does
  x = emit_diagonal(x, factors, text, op::argmax);
  const symbol m = emit_reduce_as(op::reduce, x, what, factors, output, text);
  if (b.failed()) return b.nothing();
  int along = -1;
  for (int d = 0; d < factors.size(); ++d)
    if (!output.contains(factors[d])) along = along < 0 ? d : max_rank;
  if (along < 0 || along >= max_rank) {
    b.fail(fault::rank_mismatch, text, {}, x.rank() - 1, output.size());
    return b.nothing();
  }
  sharding_rule rule;
  rule.in[0] = factors;
  rule.in[1] = rule.out[0] = output;
  return {&b, b.add_node(b.use(argmax_rules), {x.id, m.id}, rule, {.dim = along, .combine = reduction::min}, {{m.get().dims, dtype::i32}})};
}

}  // namespace detail

/// argmax<"GSE->GS">(x): the index of the largest element along the one dim that the output lacks; the first of several. NaN counts as the
/// largest, as in numpy. It has no gradient.
/// Shapes: as the equation says, int32.
/// Communicates: if that dim is sharded, the maximum and the index; in one all_gather if the dim is known to be short.
/// Compile time: the equation; that the output lacks one index.
/// Throws: nothing.
/// @see argmin, top_k
template <fixed_string Equation>
constexpr symbol argmax(here x) {
  const equation& e = detail::checked_equation<Equation>(*x.owner, 1);
  return detail::emit_argmax(x, reduction::max, e.operands[0], e.output, Equation.view());
}
/// argmax("GSE->GS", x): the same with an equation that is known at run time.
constexpr symbol argmax(std::string_view text, here x) {
  const equation e = detail::checked_equation(*x.owner, text, 1);
  return detail::emit_argmax(x, reduction::max, e.operands[0], e.output, text);
}
/// argmin<"GSE->GS">(x): the index of the smallest element along the one dim that the output lacks; the first of several. NaN counts as the
/// smallest, as in numpy. It has no gradient.
/// Shapes: as the equation says, int32.
/// Communicates: if that dim is sharded, the minimum and the index; in one all_gather if the dim is known to be short.
/// Compile time: the equation; that the output lacks one index.
/// Throws: nothing.
/// @see argmax
template <fixed_string Equation>
constexpr symbol argmin(here x) {
  const equation& e = detail::checked_equation<Equation>(*x.owner, 1);
  return detail::emit_argmax(x, reduction::min, e.operands[0], e.output, Equation.view());
}
/// argmin("GSE->GS", x): the same with an equation that is known at run time.
constexpr symbol argmin(std::string_view text, here x) {
  const equation e = detail::checked_equation(*x.owner, text, 1);
  return detail::emit_argmax(x, reduction::min, e.operands[0], e.output, text);
}

template <fixed_string Equation = "", class... Given>
  requires(detail::left_out<Equation> ? !detail::call<2, std::string_view, symbol>::fits<Given...> : !detail::tensors<1>::fits<Given...>)
constexpr auto argmax(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: argmax<\"AB->A\">(x) takes an equation and one tensor of a program");
  return detail::refused(given...);
}
template <fixed_string Equation = "", class... Given>
  requires(detail::left_out<Equation> ? !detail::call<2, std::string_view, symbol>::fits<Given...> : !detail::tensors<1>::fits<Given...>)
constexpr auto argmin(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: argmin<\"AB->A\">(x) takes an equation and one tensor of a program");
  return detail::refused(given...);
}

}}  // namespace gshard::v0

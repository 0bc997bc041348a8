// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/base/math.hpp>
#include <gshard/base/fixed_string.hpp>
#include <gshard/ir/equation.hpp>
#include <gshard/ir/reduction.hpp>
#include <gshard/trace/builder.hpp>
#include <gshard/trace/einsum.hpp>
#include <gshard/trace/map.hpp>

#include <cstdint>
#include <string_view>

// Reductions besides sums, which are einsums. A cut dim may be reduced: every device reduces its block, and what is pending is
// combined where it is needed, by all_reduce or reduce_scatter.
namespace gshard { inline namespace v0 {

namespace detail {

/// op::reduce: the reduction of x over the factors that `output` lacks. Attributes: integer[0] = reduction.
constexpr symbol emit_reduce(symbol x, reduction what, const short_list& factors, const short_list& output, std::string_view text) {
  builder& b = *x.owner;
  if (!require_real(b, text, {x})) return b.nothing();
  if (x.rank() != factors.size()) {
    b.fail(fault::rank_mismatch, text, {}, factors.size(), x.rank());
    return b.nothing();
  }
  rule loops;
  loops.in[0] = factors;
  loops.out[0] = output;
  for (int d = 0; d < factors.size(); ++d)
    if (factors.find(factors[d]) != d) loops.block(factors[d]);
  dim_list dims;
  for (int d = 0; d < output.size(); ++d) dims.push_back(x.get().dims[factors.find(output[d])]);
  attributes attr;
  attr.integer[0] = int(what);
  return {&b, b.add_node(op::reduce, {x.id}, loops, attr, {{dims, x.get().type}})};
}

/// op::argmax: the first index along `along` at which x equals m, its extremum over that dim. Attributes: integer[0] = along.
constexpr symbol emit_argmax(symbol x, reduction what, const short_list& factors, const short_list& output, std::string_view text) {
  builder& b = *x.owner;
  if (!b.failed()) b.place.said = b.says_may_move(x);  // what it is made of may move as well
  const symbol m = emit_reduce(x, what, factors, output, text);
  if (b.failed()) return b.nothing();
  int along = -1;
  for (int d = 0; d < factors.size(); ++d)
    if (!output.contains(factors[d])) along = along < 0 ? d : max_rank;
  if (along < 0 || along >= max_rank) {
    b.fail(fault::rank_mismatch, text, {}, x.rank() - 1, output.size());
    return b.nothing();
  }
  rule loops;
  loops.in[0] = factors;
  loops.in[1] = loops.out[0] = output;
  attributes attr;
  attr.integer[0] = along;
  return {&b, b.add_node(op::argmax, {x.id, m.id}, loops, attr, {{m.get().dims, dtype::i32}})};
}

/// The identity, through which no gradient flows.
inline constexpr pointwise pointwise_stop{.arity = 1,
                                          .f32 = row_of<float, [](auto a) { return a; }, 1>,
                                          .f64 = row_of<double, [](auto a) { return a; }, 1>,
                                          .linear = true};

// A template, so that its functions cost only those who call it.
template <class Symbol>
constexpr symbol emit_logsumexp(Symbol x, const short_list& factors, const short_list& output, std::string_view text) {
  builder& b = *x.owner;
  if (!b.failed()) b.place.said = b.says_may_move(x);
  const symbol largest = emit_reduce(x, reduction::max, factors, output, text);
  if (b.failed()) return b.nothing();
  const symbol m = emit_map(b, pointwise_stop, list_view(&largest, 1));
  rule loops;
  loops.in[0] = loops.out[0] = counting(x.rank());
  for (int d = 0; d < output.size(); ++d) loops.in[1].push_back(factors.find(output[d]));
  attributes attr;
  attr.function = &pointwise_of<[](auto v, auto top) {
    return exp(v - top);
  }, 2>;
  const symbol e{&b, b.add_node(op::map, {x.id, m.id}, loops, attr, {{x.get().dims, x.get().type}})};
  const symbol total = emit_einsum(b, list_view(&e, 1), list_view(&factors, 1), output, text);
  return map<[](auto sum, auto top) {
    return log(sum) + top;
  }>(total, m);
}

}  // namespace detail

/// reduce_max<"GSE->GS">(x): the largest element over the indices that the output lacks (-infinity over none). The elements that reach
/// it share its gradient.
template <fixed_string Equation>
constexpr symbol reduce_max(here x) {
  const equation& e = detail::checked_equation<Equation>(*x.owner, 1);
  return detail::emit_reduce(x, reduction::max, e.operands[0], e.output, Equation.view());
}
/// reduce_min<"GSE->GS">(x): the smallest.
template <fixed_string Equation>
constexpr symbol reduce_min(here x) {
  const equation& e = detail::checked_equation<Equation>(*x.owner, 1);
  return detail::emit_reduce(x, reduction::min, e.operands[0], e.output, Equation.view());
}
/// reduce_prod<"GSE->GS">(x): the product (1 over none).
template <fixed_string Equation>
constexpr symbol reduce_prod(here x) {
  const equation& e = detail::checked_equation<Equation>(*x.owner, 1);
  return detail::emit_reduce(x, reduction::prod, e.operands[0], e.output, Equation.view());
}
/// argmax<"GSE->GS">(x): the index, int32, of the largest element along the one dim that the output lacks; the first of several.
/// Communicates the maximum and the index, where that dim is cut.
template <fixed_string Equation>
constexpr symbol argmax(here x) {
  const equation& e = detail::checked_equation<Equation>(*x.owner, 1);
  return detail::emit_argmax(x, reduction::max, e.operands[0], e.output, Equation.view());
}
/// argmin<"GSE->GS">(x): the same of the smallest.
template <fixed_string Equation>
constexpr symbol argmin(here x) {
  const equation& e = detail::checked_equation<Equation>(*x.owner, 1);
  return detail::emit_argmax(x, reduction::min, e.operands[0], e.output, Equation.view());
}
/// logsumexp<"GSE->GS">(x) = log(sum exp x) over the indices that the output lacks, computed from the largest element.
template <fixed_string Equation>
constexpr symbol logsumexp(here x) {
  const equation& e = detail::checked_equation<Equation>(*x.owner, 1);
  return detail::emit_logsumexp<here>(x, e.operands[0], e.output, Equation.view());
}
/// stop_gradient(x): x, through which no gradient flows.
constexpr symbol stop_gradient(here x) { return detail::emit_map(*x.owner, detail::pointwise_stop, list_view(&x, 1)); }

}}  // namespace gshard::v0

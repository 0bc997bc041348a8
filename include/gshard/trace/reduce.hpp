// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Reductions: reduce_sum, reduce_mean, reduce_max, reduce_min, reduce_prod, and reduce, which takes a `reduction`; argmax, argmin and
// logsumexp.
//
// `sum` and `mean` are short names of the first two. Sums are einsums. A sharded dim may be reduced: every device reduces its block. The
// partial result is completed where it is needed, by all_reduce or reduce_scatter.

#include <gshard/base/fixed_string.hpp>
#include <gshard/base/math.hpp>
#include <gshard/ir/equation.hpp>
#include <gshard/ir/reduction.hpp>
#include <gshard/trace/builder.hpp>
#include <gshard/trace/einsum.hpp>
#include <gshard/trace/map.hpp>

#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 {

namespace detail {

/// x, or its diagonal if an index is repeated. Then `factors` has every index once.
constexpr symbol emit_diagonal(symbol x, short_list& factors, std::string_view text, op_ref reader) {
  builder& b = *x.owner;
  if (!require_elements(b, reader, text, {x})) return b.nothing();
  if (x.rank() != factors.size()) {
    b.fail(fault::rank_mismatch, text, {}, factors.size(), x.rank());
    return b.nothing();
  }
  short_list once;
  for (int d = 0; d < factors.size(); ++d)
    if (!once.contains(factors[d])) once.push_back(factors[d]);
  if (once.size() == factors.size()) return x;
  const short_list all = factors;
  factors = once;
  return emit_einsum(b, list_view(&x, 1), list_view(&all, 1), once, text);
}

/// op::reduce: the reduction of x over the factors that `output` lacks.
constexpr symbol emit_reduce(symbol x, reduction what, short_list factors, const short_list& output, std::string_view text) {
  builder& b = *x.owner;
  x = emit_diagonal(x, factors, text, op::reduce);
  if (b.failed()) return b.nothing();
  sharding_rule rule;
  rule.in[0] = factors;
  rule.out[0] = output;
  dim_list dims;
  for (int d = 0; d < output.size(); ++d) dims.push_back(x.get().dims[factors.find(output[d])]);
  return {&b, b.add_node(op::reduce, {x.id}, rule, {.combine = what}, {{dims, x.get().type}})};
}

/// The same for any reduction: a sum is an einsum.
constexpr symbol emit_reduce_or_sum(symbol x, reduction what, const short_list& factors, const short_list& output, std::string_view text) {
  if (what == reduction::sum) return emit_einsum(*x.owner, list_view(&x, 1), list_view(&factors, 1), output, text);
  return emit_reduce(x, what, factors, output, text);
}

/// op::argmax: the first index along `along` at which x equals m, its extremum over that dim.
constexpr symbol emit_argmax(symbol x, reduction what, short_list factors, const short_list& output, std::string_view text) {
  builder& b = *x.owner;
  if (!b.failed()) b.place.is_explicit = b.says_may_move(x);  // allows implicit reshards if x does
  x = emit_diagonal(x, factors, text, op::argmax);
  const symbol m = emit_reduce(x, what, factors, output, text);
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
  return {&b, b.add_node(op::argmax, {x.id, m.id}, rule, {.dim = along, .combine = reduction::min}, {{m.get().dims, dtype::i32}})};
}

/// The identity without a gradient.
inline constexpr pointwise pointwise_stop = [] {
  pointwise f = own_function<arithmetic::identity>;
  f.stops_gradient = true;
  f.linear = true;
  return f;
}();

/// The number that logsumexp subtracts before exp and adds after log: the largest element. It is 0 if that is not finite, because inf - inf
/// is NaN.
template <class Number>
constexpr Number shift_of(Number largest) {
  return largest - largest == Number(0) ? largest : Number(0);
}

// A template, so that only programs that call it pay for it.
template <class Symbol>
constexpr symbol emit_logsumexp(Symbol given, short_list factors, const short_list& output, std::string_view text) {
  builder& b = *given.owner;
  const line_of_call kept(b);
  if (!b.failed()) b.place.is_explicit = b.says_may_move(given);
  const symbol x = emit_diagonal(given, factors, text, op::argmax);
  const symbol largest = emit_reduce(x, reduction::max, factors, output, text);
  if (b.failed()) return b.nothing();
  const symbol m = emit_map(b, pointwise_stop, list_view(&largest, 1));
  sharding_rule rule;
  rule.in[0] = rule.out[0] = counting(x.rank());
  for (int d = 0; d < output.size(); ++d) rule.in[1].push_back(factors.find(output[d]));
  attributes attr;
  attr.function = &pointwise_of<[](auto v, auto top) {
    return exp(v - shift_of(top));
  }, 2>;
  const symbol e{&b, b.add_node(op::map, {x.id, m.id}, rule, attr, {{x.get().dims, x.get().type}})};
  const symbol total = emit_einsum(b, list_view(&e, 1), list_view(&factors, 1), output, text);
  return map<[](auto sum, auto top) {
    return log(sum) + shift_of(top);
  }>(total, m);
}

}  // namespace detail

/// reduce<"GSE->GS">(x, reduction::max): the sum, maximum, minimum or product over the indices that the output lacks. The verbs below name
/// each reduction. All of them have three forms: an equation, an equation that is known at run time, and none, for all dims.
/// Shapes: as the equation says; without one, a scalar.
/// Communicates: an all_reduce or reduce_scatter with this reduction, if a reduced dim is sharded.
/// Compile time: the equation; a real element type; for sums, any type of numbers.
/// Throws: nothing.
/// @see reduce_sum, reduce_mean, reduce_max, reduce_min, reduce_prod
template <fixed_string Equation>
constexpr symbol reduce(here x, reduction what) {
  const equation& e = detail::checked_equation<Equation>(*x.owner, 1);
  return detail::emit_reduce_or_sum(x, what, e.operands[0], e.output, Equation.view());
}
constexpr symbol reduce(std::string_view text, here x, reduction what) {
  const equation e = detail::checked_equation(*x.owner, text, 1);
  return detail::emit_reduce_or_sum(x, what, e.operands[0], e.output, text);
}
constexpr symbol reduce(here x, reduction what) {
  if (!x.owner->has(x)) return x.owner->nothing();
  return detail::emit_reduce_or_sum(x, what, detail::counting(x.rank()), {}, "reduce");
}
/// reduce_sum<"GSE->GS">(x), reduce_sum("GSE->GS", x), reduce_sum(x): the sum over the indices that the output lacks, or over all dims.
/// The same as `sum`.
/// Shapes: as the equation says; without one, a scalar.
/// Communicates: an all_reduce or reduce_scatter, if a reduced dim is sharded.
/// Compile time: the equation.
/// Throws: nothing.
/// @see reduce, sum
template <fixed_string Equation>
constexpr symbol reduce_sum(here x) {
  return sum<Equation>(x);
}
constexpr symbol reduce_sum(std::string_view text, here x) {
  return sum(text, x);
}
constexpr symbol reduce_sum(here x) {
  return sum(x);
}
/// reduce_mean<"GSE->GS">(x), reduce_mean("GSE->GS", x), reduce_mean(x): the sum, divided by the extents of the dims that it lacks. The
/// same as `mean`.
/// Shapes: as the equation says; without one, a scalar.
/// Communicates: as reduce_sum.
/// Compile time: the equation; a real or complex element type.
/// Throws: nothing.
/// @see reduce_sum, mean
template <fixed_string Equation>
constexpr symbol reduce_mean(here x) {
  return mean<Equation>(x);
}
constexpr symbol reduce_mean(std::string_view text, here x) {
  return mean(text, x);
}
constexpr symbol reduce_mean(here x) {
  return mean(x);
}
/// reduce_max<"GSE->GS">(x), reduce_max("GSE->GS", x), reduce_max(x): the largest element over the indices that the output lacks, or over
/// all dims; -infinity over none; NaN if one of them is NaN. Equal maxima share the gradient.
/// Shapes: as the equation says; without one, a scalar.
/// Communicates: an all_reduce or reduce_scatter with `max`, if a reduced dim is sharded.
/// Compile time: the equation; a real element type.
/// Throws: nothing.
/// @see reduce, reduce_min, argmax
template <fixed_string Equation>
constexpr symbol reduce_max(here x) {
  return reduce<Equation>(x, reduction::max);
}
constexpr symbol reduce_max(std::string_view text, here x) {
  return reduce(text, x, reduction::max);
}
constexpr symbol reduce_max(here x) {
  return reduce(x, reduction::max);
}
/// reduce_min<"GSE->GS">(x), reduce_min("GSE->GS", x), reduce_min(x): the smallest element over the indices that the output lacks, or over
/// all dims; infinity over none; NaN if one of them is NaN.
/// Shapes: as the equation says; without one, a scalar.
/// Communicates: an all_reduce or reduce_scatter with `min`, if a reduced dim is sharded.
/// Compile time: the equation; a real element type.
/// Throws: nothing.
/// @see reduce, reduce_max, argmin
template <fixed_string Equation>
constexpr symbol reduce_min(here x) {
  return reduce<Equation>(x, reduction::min);
}
constexpr symbol reduce_min(std::string_view text, here x) {
  return reduce(text, x, reduction::min);
}
constexpr symbol reduce_min(here x) {
  return reduce(x, reduction::min);
}
/// reduce_prod<"GSE->GS">(x), reduce_prod("GSE->GS", x), reduce_prod(x): the product over the indices that the output lacks, or over all
/// dims; 1 over none.
/// Shapes: as the equation says; without one, a scalar.
/// Communicates: an all_reduce or reduce_scatter with `prod`, if a reduced dim is sharded.
/// Compile time: the equation; a real element type.
/// Throws: nothing.
/// @see reduce, reduce_sum
template <fixed_string Equation>
constexpr symbol reduce_prod(here x) {
  return reduce<Equation>(x, reduction::prod);
}
constexpr symbol reduce_prod(std::string_view text, here x) {
  return reduce(text, x, reduction::prod);
}
constexpr symbol reduce_prod(here x) {
  return reduce(x, reduction::prod);
}
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
/// logsumexp<"GSE->GS">(x) = log(sum exp x) over the indices that the output lacks, computed from the largest element. It is infinity if an
/// element is, -infinity if all are or there is none, and NaN if an element is NaN.
/// Shapes: as the equation says.
/// Communicates: if a reduced dim is sharded, the maximum and the sum.
/// Compile time: the equation; a real element type.
/// Throws: nothing.
/// @see softmax, cross_entropy
template <fixed_string Equation>
constexpr symbol logsumexp(here x) {
  const equation& e = detail::checked_equation<Equation>(*x.owner, 1);
  return detail::emit_logsumexp<here>(x, e.operands[0], e.output, Equation.view());
}
/// logsumexp("GSE->GS", x): the same with an equation that is known at run time.
template <class = void>  // as above, only programs that call it pay for it
constexpr symbol logsumexp(std::string_view text, here x) {
  const equation e = detail::checked_equation(*x.owner, text, 1);
  return detail::emit_logsumexp<here>(x, e.operands[0], e.output, text);
}
/// stop_gradient(x): x, with a gradient of zero.
/// Shapes: any -> the same.
/// Communicates: nothing.
/// Compile time: nothing.
/// Throws: nothing.
/// @see differentiate.hpp
constexpr symbol stop_gradient(here x) { return detail::emit_map(*x.owner, detail::pointwise_stop, list_view(&x, 1)); }

}}  // namespace gshard::v0

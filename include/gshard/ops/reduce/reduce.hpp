// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Reductions: reduce_sum, reduce_mean, reduce_max, reduce_min, reduce_prod, and reduce, which takes a `reduction`.
//
// `sum` and `mean` are short names of the first two. Sums are einsums. A sharded dim may be reduced: every device reduces its block. The
// partial result is completed where it is needed, by all_reduce or reduce_scatter.

#include <gshard/core/base/fixed_string.hpp>
#include <gshard/core/grad/differentiator.hpp>
#include <gshard/core/ir/equation.hpp>
#include <gshard/core/ir/op.hpp>
#include <gshard/core/ir/reduction.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>

#include <array>
#include <string_view>

namespace gshard { inline namespace v0 {

namespace op {
inline constexpr operation reduce{.id = 3, .name = "reduce", .elements = reals | integers};
}  // namespace op

namespace detail {

template <class Used>
constexpr void reduce_gradient(differentiator& d, const node& n);
// Templates, so that only programs that reduce pay for the functions of the gradient.
template <class Used>
inline constexpr operation_rules reduce_rules{.of = op::reduce, .gradient = reduce_gradient<Used>};

/// x, or its diagonal if an index is repeated. `factors` then has every index once.
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

/// op::reduce: the reduction of x over the factors that `output` lacks. `kind`: op::reduce without its rules if no result needs a
/// gradient.
constexpr symbol emit_reduce_as(op_ref kind, symbol x, reduction what, short_list factors, const short_list& output,
                                std::string_view text) {
  builder& b = *x.owner;
  x = emit_diagonal(x, factors, text, kind);
  if (b.failed()) return b.nothing();
  sharding_rule rule;
  rule.in[0] = factors;
  rule.out[0] = output;
  dim_list dims;
  for (int d = 0; d < output.size(); ++d) dims.push_back(x.get().dims[factors.find(output[d])]);
  return {&b, b.add_node(kind, {x.id}, rule, {.combine = what}, {{dims, x.get().type}})};
}
template <class Used = void>
constexpr symbol emit_reduce(symbol x, reduction what, const short_list& factors, const short_list& output, std::string_view text) {
  return emit_reduce_as(x.owner->failed() ? op_ref(op::reduce) : x.owner->use(reduce_rules<Used>), x, what, factors, output, text);
}

/// The same for any reduction: a sum is an einsum.
template <class Used = void>
constexpr symbol emit_reduce_or_sum(symbol x, reduction what, const short_list& factors, const short_list& output, std::string_view text) {
  if (what == reduction::sum) return emit_einsum(*x.owner, list_view(&x, 1), list_view(&factors, 1), output, text);
  return emit_reduce<Used>(x, what, factors, output, text);
}

/// The dims of a reduction's operand that its result keeps.
constexpr short_list dims_kept_by(const node& n) {
  short_list kept;
  for (int d = 0; d < n.rule.out[0].size(); ++d) kept.push_back(n.rule.in[0].find(n.rule.out[0][d]));
  return kept;
}

/// dy where x equals the extremum. Several such elements share dy equally.
template <class Used>
constexpr void extremum_gradient(differentiator& d, const node& n) {
  const symbol dy = d.gradient(n), x = d.in(n, 0), y = d.out(n);
  const short_list all = counting(x.rank()), kept = dims_kept_by(n), own = counting(y.rank());
  const symbol hit = emit_map_of(own_function<arithmetic::equal>, std::array{x, y}, std::array{all, kept}, x);
  const symbol hits = emit_einsum(d.owner(), list_view(&hit, 1), list_view(&all, 1), kept);
  const symbol share = emit_map_of(own_function<arithmetic::divide>, std::array{dy, hits}, std::array{own, own}, y);
  d.add(n.input(0), emit_map_of(own_function<arithmetic::multiply>, std::array{hit, share}, std::array{all, kept}, x));
}

inline constexpr auto zero_indicator = [](auto v) { return v == decltype(v)(0) ? decltype(v)(1) : decltype(v)(0); };
inline constexpr auto one_for_zero = [](auto v) { return v == decltype(v)(0) ? decltype(v)(1) : v; };
/// The gradient of a product's operand v, from the number of zeros, the product of the other elements, and the gradient g of the product.
inline constexpr auto product_slope = [](auto v, auto zeros, auto product, auto g) {
  using element = decltype(v);
  if (v == element(0)) return zeros == element(1) || product != product ? g * product : element(0);
  return zeros == element(0) || product != product ? g * product / v : element(0);
};
/// dy times the product of the other elements: y / x if no element is zero. Otherwise only a single zero has a gradient: the product of
/// the others.
template <class Used>
constexpr void product_gradient(differentiator& d, const node& n) {
  builder& b = d.owner();
  const symbol dy = d.gradient(n), x = d.in(n, 0), y = d.out(n);
  const short_list all = counting(x.rank()), kept = dims_kept_by(n);
  const symbol zero = emit_map_of(undifferentiated<when_used<Used, zero_indicator>, 1>, std::array{x}, std::array{all}, x);
  const symbol zeros = emit_einsum(b, list_view(&zero, 1), list_view(&all, 1), kept);
  const symbol filled = emit_map_of(undifferentiated<when_used<Used, one_for_zero>, 1>, std::array{x}, std::array{all}, x);
  const symbol others{&b, b.add_node(op::reduce, {filled.id}, n.rule, n.attr, {{y.get().dims, y.get().type}})};
  constexpr auto& slope = undifferentiated<when_used<Used, product_slope>, 4>;
  d.add(n.input(0), emit_map_of(slope, std::array{x, zeros, others, dy}, std::array{all, kept, kept, kept}, x));
}

template <class Used>
constexpr void reduce_gradient(differentiator& d, const node& n) {
  if (n.attr.combine == reduction::prod) product_gradient<Used>(d, n);
  else extremum_gradient<Used>(d, n);
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
template <class = void>
constexpr symbol reduce(std::string_view text, here x, reduction what) {
  const equation e = detail::checked_equation(*x.owner, text, 1);
  return detail::emit_reduce_or_sum(x, what, e.operands[0], e.output, text);
}
template <class = void>
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
template <class = void>
constexpr symbol reduce_max(std::string_view text, here x) {
  return reduce(text, x, reduction::max);
}
template <class = void>
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
template <class = void>
constexpr symbol reduce_min(std::string_view text, here x) {
  return reduce(text, x, reduction::min);
}
template <class = void>
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
template <class = void>
constexpr symbol reduce_prod(std::string_view text, here x) {
  return reduce(text, x, reduction::prod);
}
template <class = void>
constexpr symbol reduce_prod(here x) {
  return reduce(x, reduction::prod);
}

GSHARD_TAKES_REDUCTION(reduce_sum)
GSHARD_TAKES_REDUCTION(reduce_mean)
GSHARD_TAKES_REDUCTION(reduce_max)
GSHARD_TAKES_REDUCTION(reduce_min)
GSHARD_TAKES_REDUCTION(reduce_prod)
template <fixed_string Equation = "", class... Given>
  requires(!detail::call<2, symbol, reduction>::fits<Given...> &&
           !(detail::left_out<Equation> && detail::call<3, std::string_view, symbol, reduction>::fits<Given...>))
constexpr auto reduce(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: reduce<\"AB->A\">(x, reduction::max) takes one tensor of a program and a reduction");
  return detail::refused(given...);
}

}}  // namespace gshard::v0

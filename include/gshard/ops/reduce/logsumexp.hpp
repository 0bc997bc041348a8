// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The logarithm of a sum of exponentials: logsumexp.

#include <gshard/core/base/fixed_string.hpp>
#include <gshard/core/base/math.hpp>
#include <gshard/core/ir/equation.hpp>
#include <gshard/core/ir/reduction.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/ops/reduce/argmax.hpp>
#include <gshard/ops/reduce/reduce.hpp>

#include <string_view>

namespace gshard { inline namespace v0 {

namespace detail {

/// The number that logsumexp subtracts before exp and adds after log: the largest element. It is 0 if that is not finite, because inf - inf
/// is NaN.
template <class Number>
constexpr Number shift_of(Number largest) {
  return largest - largest == Number(0) ? largest : Number(0);
}

inline constexpr auto shifted_exponential = [](auto v, auto top) { return exp(v - shift_of(top)); };
inline constexpr auto shifted_logarithm = [](auto sum, auto top) { return log(sum) + shift_of(top); };

// A template, so that only programs that call it pay for it.
template <class Symbol>
constexpr symbol emit_logsumexp(Symbol given, short_list factors, const short_list& output, std::string_view text) {
  builder& b = *given.owner;
  const line_of_call kept(b);
  if (!b.failed()) b.place.is_explicit = b.says_may_move(given);
  const symbol x = emit_diagonal(given, factors, text, op::argmax);
  const symbol largest = emit_reduce_as(op::reduce, x, reduction::max, factors, output, text);
  if (b.failed()) return b.nothing();
  const symbol m = emit_map(b, pointwise_stop, list_view(&largest, 1));
  sharding_rule rule;
  rule.in[0] = rule.out[0] = counting(x.rank());
  for (int d = 0; d < output.size(); ++d) rule.in[1].push_back(factors.find(output[d]));
  attributes attr;
  attr.function = &pointwise_of<when_used<Symbol, shifted_exponential>, 2>;
  const symbol e{&b, b.add_node(op::map, {x.id, m.id}, rule, attr, {{x.get().dims, x.get().type}})};
  const symbol total = emit_einsum(b, list_view(&e, 1), list_view(&factors, 1), output, text);
  return map<when_used<Symbol, shifted_logarithm>>(total, m);
}

}  // namespace detail

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

template <fixed_string Equation = "", class... Given>
  requires(detail::left_out<Equation> ? !detail::call<2, std::string_view, symbol>::fits<Given...> : !detail::tensors<1>::fits<Given...>)
constexpr auto logsumexp(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: logsumexp<\"AB->A\">(x) takes an equation and one tensor of a program");
  return detail::refused(given...);
}

}}  // namespace gshard::v0

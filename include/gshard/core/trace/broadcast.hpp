// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Explicit broadcast: repeats a tensor along dims that it lacks.
//
// Elementwise verbs broadcast implicitly if dims match in exactly one way. See map.hpp for the rule.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/core/base/fixed_string.hpp>
#include <gshard/core/base/list_view.hpp>
#include <gshard/core/ir/equation.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/letters.hpp>
#include <gshard/core/trace/map.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace gshard { inline namespace v0 {

namespace detail {

/// The first dim of the first operand whose letter is not in the output, or occurs earlier in the operand; -1: none.
constexpr int dim_not_kept(const equation& e) {
  const short_list& x = e.operands[0];
  for (int d = 0; d < x.size(); ++d)
    if (!e.output.contains(x[d]) || x.find(x[d]) != d) return d;
  return -1;
}

/// Elements come from the first operand, extents from all.
constexpr symbol emit_broadcast_like(builder& b, list_view<symbol> operands, const equation& e, std::string_view text) {
  if (const int d = dim_not_kept(e); d >= 0) b.fail(fault::index_not_kept, text, letter_of(e, e.operands[0][d]), d);
  if (b.failed() || !b.has(operands[0])) return b.nothing();
  const auto dim_of = dims_of_letters(b, operands, e, text);
  if (b.failed()) return b.nothing();
  // A new tensor, even if nothing is repeated: its gradient differs from that of the operand.
  if (e.operands[0].same(e.output))
    return emit_map_of(pointwise_identity, list_view(operands.data(), 1), list_view(&e.output, 1), operands[0]);
  return emit_broadcast(operands[0], e.operands[0], e.output, output_dims(e, dim_of));
}

}  // namespace detail

/// broadcast<"Q,QK->QK">(x, like)[q, k] = x[q]. Letters are local to the equation, as in einsum. The other operands only give extents, as
/// in `broadcast<"GP,C->GPC">(x, c)`; their elements are not read. Elementwise verbs read x itself: the result is not stored.
/// Shapes: as the equation says; every letter of x occurs once in the output.
/// Communicates: nothing. Its gradient is a sum over the new dims.
/// Compile time: the equation, ranks, and that one letter names one dim.
/// Throws: nothing.
/// @see map, einsum
template <fixed_string Equation, class... Symbols>
  requires(std::same_as<Symbols, symbol> && ...)
constexpr symbol broadcast(here x, Symbols... like) {
  const equation& e = detail::checked_equation<Equation>(*x.owner, 1 + int(sizeof...(like)));
  const std::array<symbol, 1 + sizeof...(like)> operands{x, like...};
  return detail::emit_broadcast_like(*x.owner, operands, e, Equation.view());
}
/// broadcast("Q,QK->QK", {x, like}): the same with an equation that is known at run time. There must be at least one operand.
constexpr symbol broadcast(std::string_view text, list_view<symbol> operands, std::uint32_t line = __builtin_LINE(),
                           const char* file = __builtin_FILE()) {
  builder& b = *here(operands[0], line, file).owner;
  const equation e = detail::checked_equation(b, text, int(operands.size()));
  return b.failed() ? b.nothing() : detail::emit_broadcast_like(b, operands, e, text);
}
constexpr symbol broadcast(std::string_view text, std::initializer_list<symbol> operands, std::uint32_t line = __builtin_LINE(),
                           const char* file = __builtin_FILE()) {
  return broadcast(text, list_view(operands.begin(), operands.size()), line, file);
}

template <fixed_string Equation = "", class... Given>
  requires(detail::left_out<Equation> ? !detail::call<2, std::string_view, detail::list_of<symbol>>::fits<Given...>
                                      : !detail::tensors_of_any_kind<1, 6>::fits<Given...>)
constexpr auto broadcast(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: broadcast<\"Q,QK->QK\">(x, like, ...) takes an equation, a tensor and tensors that give extents");
  return detail::refused(given...);
}

}}  // namespace gshard::v0

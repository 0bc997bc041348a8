// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Devices exchange the elements of a tensor in bf16: on_wire.

#include <gshard/core/ir/dtype.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>

#include <cstdint>
#include <type_traits>

namespace gshard { inline namespace v0 {

namespace detail {
/// Sets the wire format of a tensor, and of the tensors that it is an alias of.
constexpr void send_as_bf16(symbol x) {
  graph& g = x.owner->program;
  for (std::int32_t v = x.id;;) {
    g.at(v).bf16_on_wire = true;
    if (const std::int32_t input = x.owner->column_major_input(v); input >= 0) g.at(input).bf16_on_wire = true;  // einsums read it
    const std::int32_t producer = g.at(v).producer;
    if (producer < 0 || g.nodes[std::size_t(producer)].kind != op::annotate) return;
    v = g.nodes[std::size_t(producer)].input(0);
  }
}
}  // namespace detail

/// on_wire<bfloat16>(x) is x; devices exchange its elements rounded to bf16. Wherever x is resharded, devices round their elements,
/// exchange bf16, and convert received elements. Every collective of a float x moves half of the bytes, and so does a looped einsum. The
/// same applies to the gradient of x.
/// If x is a partial sum, every addend and every partial sum is rounded to the nearest bf16, ties to even. The error is relative to the sum
/// of the addends' absolute values. For p devices, it is at most (1 + ceil(log2 p)) / 256 to first order. In a looped einsum, it is at most
/// (p - 1) / 256.
/// NaN stays NaN. Numbers beyond the largest one become infinite. A device that needs no elements of others does not round its own.
/// Shapes: any -> the same.
/// Communicates: nothing itself.
/// Compile time: a tensor of float or double.
/// Throws: nothing.
/// @see annotate, gradient_wire
template <class T>
constexpr symbol on_wire(here x) {
  static_assert(std::is_same_v<T, bfloat16>, "gshard: on_wire<gs::bfloat16>(x): tensors travel in their own type or in bf16");
  builder& b = *x.owner;
  if (!detail::require_real(b, "on_wire", {x})) return b.nothing();
  detail::send_as_bf16(x);
  return x;
}

template <class T = void, class... Given>
  requires(!detail::tensors<1>::fits<Given...>)
constexpr auto on_wire(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: on_wire<gs::bfloat16>(x) takes one tensor of a program");
  return detail::refused(given...);
}

}}  // namespace gshard::v0

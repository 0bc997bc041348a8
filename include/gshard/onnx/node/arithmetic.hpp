// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Arithmetic of ONNX's element types on tensors of a program: integers wrap, and quotients round, as in numpy.

#include <gshard/core/ir/arithmetic.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/onnx/node/node_call.hpp>
#include <gshard/onnx/node/numpy.hpp>
#include <gshard/onnx/node/scalar_functions.hpp>

#include <cstddef>

namespace gshard { inline namespace v0 { namespace onnx {

/// A result in the carrier of an integer type, as the type holds it: modulo a power of 2.
inline symbol wrapped(symbol x, element type) {
  const element_traits& t = traits(type);
  const int bits = type == element::i32 && x.get().type == dtype::i64 ? 32 : t.wraps_at;
  if (bits == 0) return x;
  const double all = double(std::int64_t(1) << bits), half = t.is_signed || type == element::i32 ? all / 2 : 0;
  const auto modulo = [](symbol a, symbol b) { return mapped(detail::own_function<detail::arithmetic::modulo>, {a, b}); };
  const symbol zero_based = half == 0 ? x : sum_of(x, scalar_like(x, half));
  const symbol rest = modulo(zero_based, scalar_like(x, all));
  return half == 0 ? rest : difference(rest, scalar_like(x, half));
}

/// An operand of quotients and functions: a number, but not of uint64, whose carrier has a sign.
inline symbol comparable(node_call& n, std::size_t i) {
  if (n.type(i) == element::u64)
    throw error("has the input " + std::to_string(i) + " of type uint64, which gshard only adds, compares and moves");
  return n.number(i);
}

/// An operand of comparisons, in a type that orders it: uint64 less 2^63 is ordered as int64.
inline symbol ordered(symbol x, element type) {
  return type == element::u64 ? sum_of(x, scalar_like(x, -0x1p63)) : x;
}

inline symbol minimum(symbol a, symbol b) {
  if (is_real(a.get().type)) return mapped<functions::smaller{}, 2>({a, b});
  return chosen(less_than(a, b), a, b);
}
inline symbol maximum(symbol a, symbol b) {
  if (is_real(a.get().type)) return mapped<functions::larger{}, 2>({a, b});
  return chosen(less_than(b, a), a, b);
}
/// a / b: of integers, rounded towards zero.
inline symbol divided(symbol a, symbol b) {
  if (is_real(a.get().type) || is_complex(a.get().type)) return quotient(a, b);
  return mapped(detail::own_function<detail::arithmetic::quotient>, {a, b});
}

}}}  // namespace gshard::v0::onnx

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Complex tensors: complex, real, imag and conj. Arithmetic and einsum take complex tensors as they take real ones.
//
// The gradient of a real loss L with respect to z = x + iy is dL/dx + i dL/dy: the direction in which L grows fastest.
// Therefore z - rate * gradient descends, as for real tensors. (JAX returns the conjugate of this number.)

#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/map.hpp>

#include <array>

namespace gshard { inline namespace v0 {

/// real(z): the real part; z itself if z is real.
/// Shapes: any -> the same.
/// Communicates: nothing.
/// Compile time: a real or complex element type.
/// Throws: nothing.
/// @see imag, complex
constexpr symbol real(here z) {
  if (!detail::require_elements(*z.owner, op::scale, "real", {z})) return z.owner->nothing();
  return is_complex(z.get().type) ? detail::emit_cast(z, traits(z.get().type).part) : z;
}
/// imag(z): the imaginary part; zeros if z is real.
/// Shapes: any -> the same.
/// Communicates: nothing.
/// Compile time: a real or complex element type.
/// Throws: nothing.
/// @see real, complex
constexpr symbol imag(here z) {
  if (!detail::require_elements(*z.owner, op::scale, "imag", {z})) return z.owner->nothing();
  return is_complex(z.get().type) ? detail::emit_cast(z, traits(z.get().type).part, true)
                                  : detail::emit_constant(detail::pointwise_constant<0>, z);
}
/// complex(x, y) = x + iy.
/// Shapes: operands match as in map -> the dims of the operand of highest rank, complex.
/// Communicates: nothing if the operands have one sharding.
/// Compile time: that dims match; one real element type.
/// Throws: nothing.
/// @see real, imag, conj
constexpr symbol complex(here x, symbol y) {
  if (!detail::require_real(*x.owner, "complex", {x, y})) return x.owner->nothing();
  const dtype type = complex_of(x.get().type);
  const symbol real = detail::emit_cast(x, type), imaginary = detail::emit_cast(y, type, true);
  return here(real, x) + imaginary;
}
/// conj(z): the complex conjugate. An einsum with conjugation is einsum<"NI,NJ->IJ">(conj(x), y).
/// Shapes: any -> the same.
/// Communicates: nothing.
/// Compile time: a real or complex element type.
/// Throws: nothing.
/// @see complex
constexpr symbol conj(here z) {
  using namespace detail::arithmetic;
  constexpr auto& f = detail::own_function<conjugate, conjugate_slope>;
  if (!detail::require_elements(*z.owner, op::scale, "conj", {z})) return z.owner->nothing();
  if (!is_complex(z.get().type)) return z;
  return detail::emit_map(*z.owner, f, std::array<symbol, 1>{z});
}

GSHARD_TAKES(real, (!detail::with_tensor<Given...> || detail::call<1, symbol>::fits<Given...>), "real(z) takes one tensor of a program")
GSHARD_TAKES(imag, (!detail::with_tensor<Given...> || detail::call<1, symbol>::fits<Given...>), "imag(z) takes one tensor of a program")
GSHARD_TAKES(conj, (!detail::with_tensor<Given...> || detail::call<1, symbol>::fits<Given...>), "conj(z) takes one tensor of a program")
GSHARD_TAKES(complex, (!detail::with_tensor<Given...> || detail::call<2, symbol, symbol>::fits<Given...>),
             "complex(x, y) takes two tensors of a program")

}}  // namespace gshard::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// ONNX's operators on quantized tensors.

#include <gshard/onnx/node/arithmetic.hpp>
#include <gshard/onnx/node/node_call.hpp>
#include <gshard/onnx/node/numpy.hpp>
#include <gshard/onnx/node/scalar_functions.hpp>
#include <gshard/onnx/operators/convolution.hpp>
#include <gshard/onnx/operators/linear.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx { namespace operators {

/// A scale or zero point: a scalar, or a number for each index of dim `axis` of a tensor of this rank.
inline symbol along_axis(symbol s, int axis, int rank) {
  if (s.rank() != 1 || rank == 0) return s;
  if (elements_of(s) == 1) return reshaped(s, {});
  extent_list extents(std::size_t(rank - axis), 1);
  extents[0] = elements_of(s);
  return reshaped(s, extents);
}
inline symbol as_real(symbol s, dtype type) {
  return s.get().type == type ? s : checked(cast(s, type));
}

/// Rounded to the nearest even number, plus the zero point, within the limits of 8 bits.
inline symbol quantized(symbol x, symbol scale, symbol zero, element type) {
  if (type != element::u8 && type != element::i8) throw error("quantizes to " + name(type) + ", which gshard does not compute");
  const bool is_signed = type == element::i8;
  symbol q = mapped<functions::round_to_even{}, 1>({quotient(x, scale)});
  if (zero.id >= 0) q = sum_of(q, as_real(zero, q.get().type));
  q = minimum(maximum(q, scalar_like(q, is_signed ? -128 : 0)), scalar_like(q, is_signed ? 127 : 255));
  return checked(cast(q, dtype::i32));
}
inline void quantize_linear(node_call& n) {
  const symbol x = n.real(0);
  const int axis = n.rank(0) == 0 ? 0 : node_call::dim(n.rank(1) == 1 ? n.integer("axis", 1) : 0, n.rank(0));
  n.ignore({"axis", "saturate"});
  const symbol zero = n.has(2) ? along_axis(n.tensor(2), axis, n.rank(0)) : symbol{};
  const element type = n.has(2) ? n.type(2) : element::u8;
  n.set(0, quantized(x, as_real(along_axis(n.real(1), axis, n.rank(0)), x.get().type), zero, type), type);
}
/// (x - zero) * scale
inline symbol dequantized(symbol x, symbol zero, symbol scale) {
  const dtype type = scale.get().type;
  const symbol centered = zero.id < 0 ? as_real(x, type) : difference(as_real(x, type), as_real(zero, type));
  return product(centered, scale);
}
inline void dequantize_linear(node_call& n) {
  const int axis = n.rank(0) == 0 ? 0 : node_call::dim(n.rank(1) == 1 ? n.integer("axis", 1) : 0, n.rank(0));
  n.ignore({"axis"});
  const symbol zero = n.has(2) ? along_axis(n.tensor(2), axis, n.rank(0)) : symbol{};
  n.set(0, dequantized(n.tensor(0), zero, along_axis(n.real(1), axis, n.rank(0))), n.type(1));
}
inline void dynamic_quantize_linear(node_call& n) {
  const symbol x = n.real(0);
  std::vector<int> all;
  for (int d = 0; d < n.rank(0); ++d) all.push_back(d);
  const symbol none = scalar_like(x, 0);
  const symbol low = minimum(reduced(x, reduction::min, all, false), none), high = maximum(reduced(x, reduction::max, all, false), none);
  const symbol scale = quotient(difference(high, low), scalar_like(x, 255));
  const symbol exact = quotient(difference(none, low), scale);
  const symbol zero = mapped<functions::round_to_even{}, 1>({minimum(maximum(exact, none), scalar_like(x, 255))});
  n.set(0, quantized(x, scale, zero, element::u8), element::u8);
  n.set(1, scale, element::f32);
  n.set(2, checked(cast(zero, dtype::i32)), element::u8);
}

/// An operand minus its zero point, exact as double.
inline symbol centered(node_call& n, std::size_t i, std::size_t zero, int axis) {
  const symbol x = as_real(n.tensor(i), dtype::f64);
  if (!n.has(zero)) return x;
  return difference(x, along_axis(as_real(n.tensor(zero), dtype::f64), axis, n.rank(i)));
}
inline void matmul_integer(node_call& n) {
  const symbol a = centered(n, 0, 2, n.rank(0) - 2), b = centered(n, 1, 3, n.rank(1) - 1);
  n.set(0, matrix_product(a, b), element::i32);
}
inline void conv_integer(node_call& n) {
  n.set(0, convolution_of(n, centered(n, 0, 2, 0), centered(n, 1, 3, 0)), element::i32);
}
/// The product of two quantized tensors, quantized again. Inputs: a, its scale and zero point, b, the same, and those of the result.
inline void quantize_product(node_call& n, symbol y, symbol scale_of_weights) {
  const symbol scales = product(as_real(n.real(1), dtype::f64), scale_of_weights);
  const symbol scale = quotient(as_real(n.real(6), dtype::f64), scales);
  n.set(0, quantized(y, scale, n.tensor(7), n.type(7)), n.type(7));
}
inline void qlinear_matmul(node_call& n) {
  for (const std::size_t i : std::array<std::size_t, 3>{1, 4, 6})
    if (count_elements(n.extents(i)) != 1) throw error("has a scale for each row or column, which gshard does not compute");
  const symbol y = matrix_product(centered(n, 0, 2, 0), centered(n, 3, 5, 0));
  quantize_product(n, y, along_axis(as_real(n.real(4), dtype::f64), 0, 1));
}
inline void qlinear_conv(node_call& n) {
  symbol y = convolution_of(n, centered(n, 0, 2, 0), centered(n, 3, 5, 0));
  if (n.has(8)) y = with_bias(y, as_real(n.tensor(8), dtype::f64));
  quantize_product(n, y, along_axis(as_real(n.real(4), dtype::f64), 1, y.rank()));
}

inline constexpr operator_row quantization[]{
    {"ConvInteger", conv_integer},       {"DequantizeLinear", dequantize_linear}, {"DynamicQuantizeLinear", dynamic_quantize_linear},
    {"MatMulInteger", matmul_integer},   {"QLinearConv", qlinear_conv},           {"QLinearMatMul", qlinear_matmul},
    {"QuantizeLinear", quantize_linear},
};

}}}}  // namespace gshard::v0::onnx::operators

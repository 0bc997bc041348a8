// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// ONNX's elementwise operators of one tensor: functions, activations, casts and clipping.

#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/select.hpp>
#include <gshard/onnx/node/arithmetic.hpp>
#include <gshard/onnx/node/node_call.hpp>
#include <gshard/onnx/node/numpy.hpp>
#include <gshard/onnx/node/scalar_functions.hpp>

#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx { namespace operators {

/// A function of real numbers.
template <auto F>
void unary(node_call& n) {
  n.ignore({"consumed_inputs"});
  n.set(0, mapped<F, 1>({n.real(0)}), n.type(0));
}
/// A function of real numbers with parameters: attributes with their defaults.
template <auto F>
void with_parameter(node_call& n, std::string_view name, double otherwise) {
  n.ignore({"consumed_inputs"});
  const symbol x = n.real(0), parameter = scalar_like(x, n.real(name, otherwise));
  n.set(0, mapped<F, 2>({x, parameter}), n.type(0));
}
template <auto F>
void with_parameters(node_call& n, std::string_view one, double first, std::string_view other, double second) {
  n.ignore({"consumed_inputs"});
  const symbol x = n.real(0), a = scalar_like(x, n.real(one, first)), b = scalar_like(x, n.real(other, second));
  n.set(0, mapped<F, 3>({x, a, b}), n.type(0));
}

inline void abs(node_call& n) {
  n.ignore({"consumed_inputs"});
  if (is_float(n.type(0))) return unary<functions::absolute{}>(n);
  const symbol x = comparable(n, 0);
  n.set(0, wrapped(chosen(less_than(x, scalar_like(x, 0)), scaled(x, -1), x), n.type(0)), n.type(0));
}
inline void neg(node_call& n) {
  n.ignore({"consumed_inputs"});
  if (is_float(n.type(0))) return unary<functions::negative{}>(n);
  n.set(0, wrapped(scaled(n.tensor(0), -1), n.type(0)), n.type(0));
}
inline void sign(node_call& n) {
  if (is_float(n.type(0))) return unary<functions::sign{}>(n);
  const symbol x = comparable(n, 0), zero = scalar_like(x, 0);
  n.set(0, difference(less_than(zero, x), less_than(x, zero)), n.type(0));
}
inline void relu(node_call& n) {
  n.ignore({"consumed_inputs"});
  if (is_float(n.type(0))) return unary<functions::relu{}>(n);
  const symbol x = comparable(n, 0), zero = scalar_like(x, 0);
  n.set(0, chosen(less_than(x, zero), zero, x), n.type(0));
}
inline void identity(node_call& n) {
  n.set(0, n.in(0));
}

inline void logical_not(node_call& n) {
  n.set(0, checked(gshard::logical_not(n.tensor(0))), element::boolean);
}
inline void is_nan(node_call& n) {
  n.set(0, checked(cast(mapped<functions::is_nan{}, 1>({n.real(0)}), dtype::boolean)), element::boolean);
}
inline void is_inf(node_call& n) {
  const symbol x = n.real(0);
  symbol found = scalar_like(x, 0);
  found = expanded(found, n.extents(0));
  if (n.integer("detect_positive", 1)) found = sum_of(found, mapped<functions::is_positive_infinity{}, 1>({x}));
  if (n.integer("detect_negative", 1)) found = sum_of(found, mapped<functions::is_negative_infinity{}, 1>({x}));
  n.set(0, checked(cast(found, dtype::boolean)), element::boolean);
}
inline void gelu(node_call& n) {
  const std::string how = n.text("approximate", "none");
  if (how == "none") return unary<functions::gelu{}>(n);
  if (how == "tanh") return unary<functions::gelu_by_tanh{}>(n);
  n.refuse("approximate");
}

/// x as another element type.
inline void cast_to(node_call& n, element to) {
  const element from = n.type(0);
  if (traits(to).carrier == dtype::count_ || traits(from).carrier == dtype::count_)
    throw error("casts " + name(from) + " to " + name(to) + ", and gshard has no such tensors");
  if (is_complex(from) != is_complex(to)) throw error("casts " + name(from) + " to " + name(to) + ", which gshard does not compute");
  if ((from == element::u64 && is_float(to)) || (to == element::u64 && is_float(from)))
    throw error("casts " + name(from) + " to " + name(to) + ", and gshard computes uint64 as int64");
  symbol x = n.tensor(0);
  if (is_integer(to) && (is_integer(from) || is_float(from)) && (traits(to).wraps_at || to == element::i32)) {
    if (from == to) return n.set(0, x, to);
    x = wrapped(checked(cast(x, dtype::i64)), to);  // numbers of a smaller type wrap, as in numpy
  }
  n.set(0, x, to);
}
inline void cast_by_attribute(node_call& n) {
  n.ignore({"saturate"});
  std::int64_t to = 0;
  if (n.opset() < 6) {
    const std::string text = n.text("to", "");
    std::string lower;
    for (const char c : text) lower += c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
    for (const element_traits& t : element_table)
      if (t.name == lower) to = int(t.type);
  } else {
    to = n.integer("to");
  }
  if (element_of(to) == element::undefined) n.refuse("to");
  cast_to(n, element_of(to));
}
inline void cast_like(node_call& n) {
  n.ignore({"saturate"});
  cast_to(n, n.type(1));
}

/// The limits are inputs, and before version 11 attributes.
inline void clip(node_call& n) {
  n.ignore({"consumed_inputs"});
  const element type = n.type(0);
  symbol x = is_float(type) ? n.real(0) : comparable(n, 0);
  const auto limit = [&](std::size_t i, std::string_view name) -> symbol {
    if (n.opset() < 11) return n.states(name) ? scalar_like(x, n.real(name, 0)) : symbol{};
    return n.has(i) ? n.number(i) : symbol{};
  };
  const symbol low = limit(1, "min"), high = limit(2, "max");
  if (low.id >= 0) x = maximum(x, low);
  if (high.id >= 0) x = minimum(x, high);
  n.set(0, x, type);
}

inline void dropout(node_call& n) {
  n.ignore({"consumed_inputs", "is_test", "seed", "ratio"});
  const bool trains = n.opset() >= 12 && n.has(2) && n.known(2).integer(0) != 0;
  const double ratio = n.opset() >= 12 && n.has(1) ? n.known_real(1) : 0.5;
  if (trains && ratio != 0) throw error("has training_mode = true, whose random numbers gshard does not repeat");
  if (n.wants(1)) {
    const bool is_mask = n.opset() >= 10;
    const element type = is_mask ? element::boolean : n.type(0);
    n.set(1, filled(n.program(), traits(type).carrier, n.extents(0), 1), type);
  }
  n.set(0, n.in(0));
}

inline constexpr operator_row elementwise[]{
    {"Abs", abs},
    {"Acos", unary<functions::acos{}>},
    {"Acosh", unary<functions::acosh{}>},
    {"Asin", unary<functions::asin{}>},
    {"Asinh", unary<functions::asinh{}>},
    {"Atan", unary<functions::atan{}>},
    {"Atanh", unary<functions::atanh{}>},
    {"Cast", cast_by_attribute},
    {"CastLike", cast_like},
    {"Ceil", unary<functions::ceil{}>},
    {"Celu", [](node_call& n) { with_parameter<functions::celu{}>(n, "alpha", 1); }},
    {"Clip", clip},
    {"Cos", unary<functions::cos{}>},
    {"Cosh", unary<functions::cosh{}>},
    {"Dropout", dropout},
    {"Elu", [](node_call& n) { with_parameter<functions::elu{}>(n, "alpha", 1); }},
    {"Erf", unary<functions::erf{}>},
    {"Exp", unary<functions::exp{}>},
    {"Floor", unary<functions::floor{}>},
    {"Gelu", gelu},
    {"HardSigmoid", [](node_call& n) { with_parameters<functions::hard_sigmoid{}>(n, "alpha", 0.2, "beta", 0.5); }},
    {"HardSwish", unary<functions::hard_swish{}>},
    {"Identity", identity},
    {"IsInf", is_inf},
    {"IsNaN", is_nan},
    {"LeakyRelu", [](node_call& n) { with_parameter<functions::leaky_relu{}>(n, "alpha", 0.01); }},
    {"Log", unary<functions::log{}>},
    {"Mish", unary<functions::mish{}>},
    {"Neg", neg},
    {"Not", logical_not},
    {"Reciprocal", unary<functions::reciprocal{}>},
    {"Relu", relu},
    {"Round", unary<functions::round_to_even{}>},
    {"Selu",
     [](node_call& n) {
       const bool is_old = n.opset() < 6;
       with_parameters<functions::selu{}>(n, "alpha", is_old ? 1.6732 : 1.67326319217681884765625, "gamma",
                                          is_old ? 1.0507 : 1.05070102214813232421875);
     }},
    {"Shrink", [](node_call& n) { with_parameters<functions::shrink{}>(n, "lambd", 0.5, "bias", 0); }},
    {"Sigmoid", unary<functions::sigmoid{}>},
    {"Sign", sign},
    {"Sin", unary<functions::sin{}>},
    {"Sinh", unary<functions::sinh{}>},
    {"Softplus", unary<functions::softplus{}>},
    {"Softsign", unary<functions::softsign{}>},
    {"Sqrt", unary<functions::sqrt{}>},
    {"Swish", [](node_call& n) { with_parameter<functions::swish{}>(n, "alpha", 1); }},
    {"Tan", unary<functions::tan{}>},
    {"Tanh", unary<functions::tanh{}>},
    {"ThresholdedRelu", [](node_call& n) { with_parameter<functions::thresholded_relu{}>(n, "alpha", 1); }},
};

}}}}  // namespace gshard::v0::onnx::operators

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// ONNX's elementwise operators of several tensors: arithmetic, comparisons, logic and selection.

#include <gshard/core/trace/select.hpp>
#include <gshard/onnx/node/arithmetic.hpp>
#include <gshard/onnx/node/node_call.hpp>
#include <gshard/onnx/node/numpy.hpp>
#include <gshard/onnx/node/scalar_functions.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx { namespace operators {

/// The second operand. Before version 7 it broadcasts only if the attribute says so, from the dim `axis` of the first operand on.
inline symbol second_operand(node_call& n, symbol second) {
  if (n.opset() >= 7) return second;
  n.ignore({"consumed_inputs"});
  const bool broadcasts = n.integer("broadcast", 0) != 0;
  const int rank = n.rank(0), own = n.rank(1);
  const std::int64_t axis = n.states("axis") ? n.integer("axis", 0) : rank - own;
  if (!broadcasts) {
    if (extents_of(second) != n.extents(0)) throw error("has operands " + text_of(n.extents(0)) + " and " + text_of(n.extents(1)));
    return second;
  }
  const std::int64_t first = axis < 0 ? axis + rank : axis, behind = rank - first - own;
  if (behind < 0)
    throw error("has axis = " + std::to_string(axis) + " for operands of " + std::to_string(rank) + " and " + std::to_string(own) +
                " dims");
  extent_list extents = n.extents(1);
  extents.insert(extents.end(), std::size_t(behind), 1);
  return reshaped(second, extents);
}
inline void check_equal_types(node_call& n) {
  for (std::size_t i = 1; i < n.inputs(); ++i)
    if (n.has(i) && n.type(i) != n.type(0)) throw error("has operands of type " + name(n.type(0)) + " and " + name(n.type(i)));
}

/// f(a, b) of numbers of one type.
template <class F>
void arithmetic(node_call& n, F f) {
  check_equal_types(n);
  const symbol a = n.number(0), b = second_operand(n, n.number(1));
  n.set(0, wrapped(f(a, b), n.type(0)), n.type(0));
}
inline void add(node_call& n) {
  arithmetic(n, sum_of);
}
inline void sub(node_call& n) {
  arithmetic(n, difference);
}
inline void mul(node_call& n) {
  arithmetic(n, product);
}
inline void divide(node_call& n) {
  if (n.type(0) == element::u64) throw error("divides uint64, which gshard only adds, compares and moves");
  arithmetic(n, divided);
}

/// A power; integers of at most 32 bits as double.
inline void pow(node_call& n) {
  const element type = n.type(0);
  symbol x = n.number(0), p = second_operand(n, n.number(1));
  if (is_float(type)) {
    if (p.get().type != x.get().type) {
      const bool in_double = p.get().type == dtype::f64;  // as numpy
      if (in_double)
        x = checked(cast(x, dtype::f64));
      else
        p = checked(cast(p, x.get().type));
    }
    return n.set(0, mapped<functions::power{}, 2>({x, p}), type);
  }
  comparable(n, 0);
  comparable(n, 1);
  x = checked(cast(x, dtype::f64));
  p = checked(cast(p, dtype::f64));
  n.set(0, mapped<functions::power{}, 2>({x, p}), type);
}

inline void mod(node_call& n) {
  check_equal_types(n);
  const symbol a = comparable(n, 0), b = comparable(n, 1);
  const bool truncates = n.integer("fmod", 0) != 0;
  if (is_float(n.type(0))) {
    if (!truncates) throw error("has fmod = 0 for real numbers, which ONNX excludes");
    return n.set(0, mapped<functions::remainder{}, 2>({a, b}), n.type(0));
  }
  const symbol rest =
      truncates ? difference(a, product(divided(a, b), b)) : mapped(detail::own_function<detail::arithmetic::modulo>, {a, b});
  n.set(0, rest, n.type(0));
}

/// Shifts of integers of at most 32 bits, which double holds.
inline void bit_shift(node_call& n) {
  const element type = n.type(0);
  const std::string direction = n.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") n.refuse("direction");
  comparable(n, 0);
  const symbol x = checked(cast(n.number(0), dtype::f64)), by = checked(cast(n.number(1), dtype::f64));
  const bool left = direction == "LEFT";
  const symbol shifted = left ? mapped<functions::shifted_left{}, 2>({x, by}) : mapped<functions::shifted_right{}, 2>({x, by});
  n.set(0, wrapped(checked(cast(shifted, dtype::i64)), type), type);
}

/// f of any number of operands.
template <class F>
symbol folded(node_call& n, F f) {
  check_equal_types(n);
  symbol all = n.number(0);
  for (std::size_t i = 1; i < n.inputs(); ++i) all = f(all, n.number(i));
  return all;
}
inline void sum(node_call& n) {
  n.ignore({"consumed_inputs"});
  n.set(0, folded(n, sum_of), n.type(0));
}
inline void mean(node_call& n) {
  n.ignore({"consumed_inputs"});
  n.set(0, scaled(folded(n, sum_of), 1.0 / double(n.inputs())), n.type(0));
}
template <class F>
void extremum(node_call& n, F f) {
  n.ignore({"consumed_inputs"});
  const element type = n.type(0);
  const auto of_ordered = [&](symbol a, symbol b) { return ordered(f(ordered(a, type), ordered(b, type)), type); };  // 2^63 twice is 0
  n.set(0, type == element::u64 ? folded(n, of_ordered) : folded(n, f), type);
}

/// f(a, b) as truth values.
template <class F>
void comparison(node_call& n, F f) {
  check_equal_types(n);
  const symbol a = ordered(n.number(0), n.type(0)), b = second_operand(n, ordered(n.number(1), n.type(1)));
  n.set(0, checked(cast(f(a, b), dtype::boolean)), element::boolean);
}
inline void equality(node_call& n) {
  check_equal_types(n);
  const symbol a = n.number(0), b = second_operand(n, n.number(1));
  n.set(0, checked(cast(equals(a, b), dtype::boolean)), element::boolean);
}
inline symbol at_most(symbol a, symbol b) {
  return mapped(detail::own_function<detail::arithmetic::at_most>, {a, b});
}

template <class F>
void logic(node_call& n, F) {
  if (n.type(0) != element::boolean || n.type(1) != element::boolean) throw error("has operands that are not truth values");
  const symbol a = n.tensor(0), b = second_operand(n, n.tensor(1));
  n.set(0, mapped(detail::own_function<F>, {a, b}), element::boolean);
}
inline void exclusive_or(node_call& n) {
  const symbol a = n.tensor(0), b = second_operand(n, n.tensor(1));
  const symbol same = mapped(detail::own_function<detail::arithmetic::equal>, {a, b});
  n.set(0, checked(gshard::logical_not(same)), element::boolean);
}

inline void where(node_call& n) {
  if (n.type(1) != n.type(2)) throw error("chooses between " + name(n.type(1)) + " and " + name(n.type(2)));
  const symbol a = n.tensor(1), b = n.tensor(2), condition = checked(cast(n.tensor(0), a.get().type));
  n.set(0, chosen(condition, a, b), n.type(1));
}

/// The slope broadcasts to the tensor. Before version 7, a slope of one dim belongs to the channels.
inline void prelu(node_call& n) {
  n.ignore({"consumed_inputs"});
  const symbol x = n.real(0);
  symbol slope = n.real(1);
  if (n.opset() < 7 && n.rank(1) == 1 && n.rank(0) > 2 && n.extents(1)[0] != 1) {
    extent_list extents{n.extents(1)[0]};
    extents.insert(extents.end(), std::size_t(n.rank(0) - 2), 1);
    slope = reshaped(slope, extents);
  }
  n.set(0, mapped<functions::leaky_relu{}, 2>({x, slope}), n.type(0));
}

inline constexpr operator_row binary[]{
    {"Add", add},
    {"And", [](node_call& n) { logic(n, detail::arithmetic::both{}); }},
    {"BitShift", bit_shift},
    {"Div", divide},
    {"Equal", [](node_call& n) { equality(n); }},
    {"Greater", [](node_call& n) { comparison(n, [](symbol a, symbol b) { return less_than(b, a); }); }},
    {"GreaterOrEqual", [](node_call& n) { comparison(n, [](symbol a, symbol b) { return at_most(b, a); }); }},
    {"Less", [](node_call& n) { comparison(n, less_than); }},
    {"LessOrEqual", [](node_call& n) { comparison(n, at_most); }},
    {"Max", [](node_call& n) { extremum(n, maximum); }},
    {"Mean", mean},
    {"Min", [](node_call& n) { extremum(n, minimum); }},
    {"Mod", mod},
    {"Mul", mul},
    {"Or", [](node_call& n) { logic(n, detail::arithmetic::either{}); }},
    {"PRelu", prelu},
    {"Pow", pow},
    {"Sub", sub},
    {"Sum", sum},
    {"Where", where},
    {"Xor", exclusive_or},
};

}}}}  // namespace gshard::v0::onnx::operators

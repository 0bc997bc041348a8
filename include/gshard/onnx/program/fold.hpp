// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Computes nodes whose inputs are known while importing: shapes, indices, and the conditions that follow from them.

#include <gshard/onnx/file/constant.hpp>
#include <gshard/onnx/node/node_call.hpp>
#include <gshard/onnx/node/numpy.hpp>
#include <gshard/onnx/node/scalar_functions.hpp>
#include <gshard/onnx/operators/reduce.hpp>
#include <gshard/onnx/operators/shape.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx { namespace folding {

/// Calls f(places) for all indices of a tensor with these extents, row by row.
template <class F>
void for_each_index(const extent_list& extents, const F& f) {
  extent_list at(extents.size(), 0);
  for (std::int64_t left = count_elements(extents); left > 0; --left) {
    f(at);
    for (std::size_t d = extents.size(); d-- > 0;) {
      if (++at[d] < extents[d]) break;
      at[d] = 0;
    }
  }
}
/// The row-major place of an index, which is broadcast to these extents.
inline std::size_t place_in(const extent_list& extents, const extent_list& at) {
  std::int64_t place = 0;
  const std::size_t lacks = at.size() - extents.size();
  for (std::size_t d = 0; d < extents.size(); ++d) place = place * extents[d] + (extents[d] == 1 ? 0 : at[d + lacks]);
  return std::size_t(place);
}
inline void append(constant& to, const constant& from, std::size_t i) {
  if (to.is_real())
    to.reals.push_back(rounded(to.type, from.real(i)));
  else
    to.integers.push_back(wrapped(to.type, from.integer(i)));
}
/// The elements of c at f(index), for all indices of a result.
template <class F>
constant picked(const constant& c, extent_list extents, const F& f) {
  constant y = empty_like(c.type, extents);
  for_each_index(extents, [&](const extent_list& at) { append(y, c, f(at)); });
  return y;
}

/// f(a, b) of numbers, broadcast as by numpy.
template <class Real, class Integer>
constant binary(const constant& a, const constant& b, element type, const Real& of_reals, const Integer& of_integers) {
  const extent_list extents = broadcast_extents(a.extents, b.extents);
  constant y = empty_like(type, extents);
  for_each_index(extents, [&](const extent_list& at) {
    const std::size_t i = place_in(a.extents, at), j = place_in(b.extents, at);
    if (a.is_real()) {
      const double x = of_reals(a.reals[i], b.real(j));
      if (y.is_real())
        y.reals.push_back(rounded(type, x));
      else
        y.integers.push_back(std::int64_t(x));
    } else {
      y.integers.push_back(wrapped(type, of_integers(a.integers[i], b.integer(j))));
    }
  });
  return y;
}
template <class F>
constant unary(const constant& x, const F& f) {
  constant y = empty_like(x.type, x.extents);
  for (const double v : x.reals) y.reals.push_back(rounded(x.type, f(v)));
  return y;
}

inline std::int64_t floor_modulo(std::int64_t a, std::int64_t b) {
  return detail::arithmetic::modulo()(a, b);
}
inline std::int64_t plus(std::int64_t a, std::int64_t b) {
  return detail::arithmetic::add()(a, b);
}

inline constant cast_constant(const constant& c, element to) {
  constant y = empty_like(to, c.extents);
  for (std::size_t i = 0; i < c.size(); ++i) {
    if (y.is_real())
      y.reals.push_back(rounded(to, c.real(i)));
    else if (to == element::boolean)
      y.integers.push_back(c.is_real() ? c.reals[i] != 0 : c.integers[i] != 0);
    else
      y.integers.push_back(wrapped(to, c.is_real() ? kernel::detail::converted<std::int64_t>(c.reals[i]) : c.integers[i]));
  }
  return y;
}

/// The result of a comparison or an arithmetic operator of two inputs, if it is one of these.
inline bool fold_binary(node_call& n) {
  const std::string& op = n.operation();
  const constant &a = n.known(0), &b = n.known(1);
  const auto set = [&](element type, const auto& reals, const auto& integers) {
    n.set(0, binary(a, b, type, reals, integers));
    return true;
  };
  using real = double;
  using integer = std::int64_t;
  if (n.opset() < 7 || a.type != b.type) return false;
  if (op == "Add")
    return set(
        a.type, [](real x, real y) { return x + y; }, plus);
  if (op == "Sub")
    return set(
        a.type, [](real x, real y) { return x - y; }, detail::arithmetic::subtract());
  if (op == "Mul")
    return set(
        a.type, [](real x, real y) { return x * y; }, detail::arithmetic::multiply());
  if (op == "Div")
    return set(
        a.type, [](real x, real y) { return x / y; }, detail::arithmetic::quotient());
  if (op == "Mod" && n.integer("fmod", 0) == 0 && !a.is_real())
    return set(
        a.type, [](real x, real) { return x; }, floor_modulo);
  const element truth = element::boolean;
  if (op == "Equal")
    return set(
        truth, [](real x, real y) { return real(x == y); }, [](integer x, integer y) { return integer(x == y); });
  if (op == "Less")
    return set(
        truth, [](real x, real y) { return real(x < y); }, [](integer x, integer y) { return integer(x < y); });
  if (op == "Greater")
    return set(
        truth, [](real x, real y) { return real(x > y); }, [](integer x, integer y) { return integer(x > y); });
  if (op == "LessOrEqual")
    return set(
        truth, [](real x, real y) { return real(x <= y); }, [](integer x, integer y) { return integer(x <= y); });
  if (op == "GreaterOrEqual")
    return set(
        truth, [](real x, real y) { return real(x >= y); }, [](integer x, integer y) { return integer(x >= y); });
  if (op == "And")
    return set(
        truth, [](real x, real) { return x; }, [](integer x, integer y) { return integer(x && y); });
  if (op == "Or")
    return set(
        truth, [](real x, real) { return x; }, [](integer x, integer y) { return integer(x || y); });
  return false;
}
inline bool fold_unary(node_call& n) {
  const std::string& op = n.operation();
  const constant& x = n.known(0);
  const auto set = [&](constant c) {
    n.set(0, std::move(c));
    return true;
  };
  if (op == "Not")
    return set(binary(
        x, x, element::boolean, [](double v, double) { return v; }, [](std::int64_t v, std::int64_t) { return std::int64_t(!v); }));
  if (op == "Cast" && n.opset() >= 6) {
    const element to = element_of(n.integer("to"));
    n.ignore({"saturate"});
    return can_be_known(to) && to != element::u64 && set(cast_constant(x, to));
  }
  if (op == "Neg" && !x.is_real()) {
    constant y = x;
    for (std::int64_t& v : y.integers) v = wrapped(x.type, detail::arithmetic::subtract()(std::int64_t(0), v));
    return set(y);
  }
  if (!x.is_real()) return false;
  if (op == "Neg") return set(unary(x, [](double v) { return -v; }));
  if (op == "Floor") return set(unary(x, [](double v) { return std::floor(v); }));
  if (op == "Ceil") return set(unary(x, [](double v) { return std::ceil(v); }));
  if (op == "Round") return set(unary(x, [](double v) { return std::nearbyint(v); }));
  if (op == "Relu") return set(unary(x, [](double v) { return v < 0 ? 0 : v; }));
  if (op == "Sqrt") return set(unary(x, [](double v) { return std::sqrt(v); }));
  if (op == "Reciprocal") return set(unary(x, [](double v) { return 1 / v; }));
  return false;
}

/// Range, ConstantOfShape and other nodes that make tensors of known elements.
inline constant range(node_call& n) {
  const constant &start = n.known(0), &limit = n.known(1), &step = n.known(2);
  constant y = empty_like(start.type, {0});
  if (start.size() != 1 || limit.size() != 1 || step.size() != 1 || step.real(0) == 0)
    throw error("has limits that are no numbers, or a step of 0");
  const double count = std::max(0.0, std::ceil((limit.real(0) - start.real(0)) / step.real(0)));
  if (!(count <= double(most_known)))
    throw error("makes " + std::to_string(count) + " elements; gshard makes at most " + std::to_string(most_known));
  for (std::int64_t i = 0; i < std::int64_t(count); ++i)
    if (y.is_real())
      y.reals.push_back(rounded(y.type, start.real(0) + double(i) * step.real(0)));
    else
      y.integers.push_back(start.integers[0] + i * step.integers[0]);
  y.extents = {std::int64_t(count)};
  return y;
}
inline void constant_of_shape(node_call& n) {
  const extent_list extents = n.known_integers(0);
  for (const std::int64_t e : extents)
    if (e < 0) throw error("makes a tensor " + text_of(extents));
  constant fill = scalar_real(0);
  if (const model_attribute* const a = n.find("value"); a && a->tensor) {
    if (!can_be_known(a->tensor->type) || a->tensor->elements() != 1) n.refuse("value");
    fill = constant_of(*a->tensor);
  }
  if (count_elements(extents) <= most_known) return n.set(0, picked(fill, extents, [](const extent_list&) { return std::size_t(0); }));
  n.set(0, filled(n.program(), traits(fill.type).carrier, extents, fill.real(0)), fill.type);
}
inline void constant_node(node_call& n) {
  if (const model_attribute* const a = n.find("value"); a && a->tensor) return n.set(0, value_of(a->tensor, ""));
  if (n.states("value_float")) return n.set(0, scalar_real(n.real("value_float", 0)));
  if (n.states("value_int")) return n.set(0, scalar_integer(n.integer("value_int", 0)));
  if (n.states("value_ints")) return n.set(0, integers_of(n.integers("value_ints")));
  if (n.states("value_floats")) {
    const std::vector<float> all = n.reals("value_floats");
    constant c = empty_like(element::f32, {std::int64_t(all.size())});
    c.reals.assign(all.begin(), all.end());
    return n.set(0, c);
  }
  throw error("has no value that gshard reads: a tensor, numbers or integers");
}
inline void nonzero(node_call& n) {
  const constant& x = n.known(0);
  std::vector<extent_list> found;
  for_each_index(x.extents, [&](const extent_list& at) {
    if (x.real(place_in(x.extents, at)) != 0) found.push_back(at);
  });
  constant y = empty_like(element::i64, {std::int64_t(x.extents.size()), std::int64_t(found.size())});
  for (std::size_t d = 0; d < x.extents.size(); ++d)
    for (const extent_list& at : found) y.integers.push_back(at[d]);
  n.set(0, y);
}

/// Gather, Slice, Concat and other nodes that move elements.
inline bool fold_moves(node_call& n) {
  const std::string& op = n.operation();
  const constant& x = n.known(0);
  const auto keep = [&](const extent_list& extents) {
    if (count_elements(extents) != count_elements(x.extents)) return false;  // the operator has the sentence
    constant y = x;
    y.extents = extents;
    n.set(0, std::move(y));
    return true;
  };
  if (op == "Squeeze") return keep(operators::squeezed_extents(n));
  if (op == "Unsqueeze") return keep(operators::unsqueezed_extents(n));
  if (op == "Reshape" && n.opset() >= 5) {
    const bool allows_zero = n.integer("allowzero", 0) != 0;
    return keep(operators::reshape_extents(n, n.known_integers(1), allows_zero));
  }
  if (op == "Gather") {
    const auto at = std::size_t(node_call::dim(n.integer("axis", 0), n.rank(0)));
    const constant& ids = n.known(1);
    extent_list extents(x.extents.begin(), x.extents.begin() + std::ptrdiff_t(at));
    extents.insert(extents.end(), ids.extents.begin(), ids.extents.end());
    extents.insert(extents.end(), x.extents.begin() + std::ptrdiff_t(at) + 1, x.extents.end());
    for (const std::int64_t i : ids.integers)
      if (i < -x.extents[at] || i >= x.extents[at])
        throw error("has the index " + std::to_string(i) + " for a dim of " + std::to_string(x.extents[at]));
    n.set(0, picked(x, extents, [&](const extent_list& place) {
            const auto of_ids = place.begin() + std::ptrdiff_t(at);
            const std::int64_t id = ids.integer(place_in(ids.extents, extent_list(of_ids, of_ids + std::ptrdiff_t(ids.extents.size()))));
            extent_list from(place.begin(), of_ids);
            from.push_back(id < 0 ? id + x.extents[at] : id);
            from.insert(from.end(), of_ids + std::ptrdiff_t(ids.extents.size()), place.end());
            return place_in(x.extents, from);
          }));
    return true;
  }
  if (op == "Slice") {
    extent_list extents = x.extents;
    const std::vector<operators::taken_range> ranges = operators::slice_ranges(n);
    for (const operators::taken_range& r : ranges) extents[std::size_t(r.dim)] = r.count;
    n.set(0, picked(x, extents, [&](extent_list at) {
            for (const operators::taken_range& r : ranges) at[std::size_t(r.dim)] = r.first + at[std::size_t(r.dim)] * r.step;
            return place_in(x.extents, at);
          }));
    return true;
  }
  if (op == "Concat") {
    const auto at = std::size_t(node_call::dim(n.opset() < 4 ? n.integer("axis", 1) : n.integer("axis"), n.rank(0)));
    extent_list extents = x.extents;
    extents[at] = 0;
    for (std::size_t i = 0; i < n.inputs(); ++i) {
      if (n.known(i).type != x.type || n.rank(i) != n.rank(0)) return false;
      for (std::size_t d = 0; d < extents.size(); ++d)
        if (d != at && n.extents(i)[d] != x.extents[d]) return false;
      extents[at] += n.extents(i)[at];
    }
    constant y = empty_like(x.type, extents);
    for_each_index(extents, [&](extent_list place) {
      std::size_t i = 0;
      for (; place[at] >= n.extents(i)[at]; ++i) place[at] -= n.extents(i)[at];
      append(y, n.known(i), place_in(n.extents(i), place));
    });
    n.set(0, std::move(y));
    return true;
  }
  if (op == "Expand") {
    const extent_list extents = broadcast_extents(x.extents, n.known_integers(1));
    if (count_elements(extents) > most_known) return false;
    n.set(0, picked(x, extents, [&](const extent_list& at) { return place_in(x.extents, at); }));
    return true;
  }
  if (op == "Transpose") {
    std::vector<std::int64_t> order = n.integers("perm");
    if (order.empty())
      for (int d = n.rank(0); d-- > 0;) order.push_back(d);
    if (int(order.size()) != n.rank(0)) return false;
    const std::vector<int> dims = node_call::dims(order, n.rank(0), "perm");
    extent_list extents;
    for (const int d : dims) extents.push_back(x.extents[std::size_t(d)]);
    n.set(0, picked(x, extents, [&](const extent_list& at) {
            extent_list from(at.size());
            for (std::size_t d = 0; d < dims.size(); ++d) from[std::size_t(dims[d])] = at[d];
            return place_in(x.extents, from);
          }));
    return true;
  }
  return false;
}
inline bool fold_where(node_call& n) {
  const constant &condition = n.known(0), &a = n.known(1), &b = n.known(2);
  if (a.type != b.type) return false;
  const extent_list extents = broadcast_extents(condition.extents, broadcast_extents(a.extents, b.extents));
  constant y = empty_like(a.type, extents);
  for_each_index(extents, [&](const extent_list& at) {
    if (condition.integer(place_in(condition.extents, at)) != 0)
      append(y, a, place_in(a.extents, at));
    else
      append(y, b, place_in(b.extents, at));
  });
  n.set(0, std::move(y));
  return true;
}
/// Products, sums and extrema of integers.
inline bool fold_reduction(node_call& n) {
  const std::string& op = n.operation();
  const bool sums = op == "ReduceSum", multiplies = op == "ReduceProd", largest = op == "ReduceMax", smallest = op == "ReduceMin";
  if (!sums && !multiplies && !largest && !smallest) return false;
  const constant& x = n.known(0);
  if (x.is_real() || x.size() == 0) return false;
  const operators::reduced_dims r = operators::dims_of_reduction(n, sums ? 13 : 18);
  if (r.is_identity) return n.set(0, x), true;
  extent_list kept = x.extents, extents;
  for (const int d : r.dims) kept[std::size_t(d)] = 1;
  for (std::size_t d = 0; d < kept.size(); ++d)
    if (r.keeps || std::find(r.dims.begin(), r.dims.end(), int(d)) == r.dims.end()) extents.push_back(kept[d]);
  constant y = empty_like(x.type, extents);
  y.integers.resize(std::size_t(count_elements(kept)));
  std::vector<bool> begun(y.integers.size(), false);
  for_each_index(x.extents, [&](const extent_list& at) {
    const std::size_t to = place_in(kept, at);
    const std::int64_t v = x.integers[place_in(x.extents, at)];
    std::int64_t& all = y.integers[to];
    all = !begun[to]   ? v
          : sums       ? plus(all, v)
          : multiplies ? detail::arithmetic::multiply()(all, v)
          : largest    ? std::max(all, v)
                       : std::min(all, v);
    all = wrapped(x.type, all);
    begun[to] = true;
  });
  n.set(0, std::move(y));
  return true;
}

/// Computes a node from known inputs. False if the node, or one of its inputs, is of another kind; then it is a node of the program.
inline bool fold(node_call& n) {
  if (n.inputs() == 0) return false;
  std::int64_t elements = 0;
  for (std::size_t i = 0; i < n.inputs(); ++i) {
    if (n.has(i) && !n.is_known(i)) return false;
    if (n.has(i)) elements += std::int64_t(n.known(i).size());
    if (n.has(i) && n.type(i) == element::u64) return false;
  }
  if (elements > most_known || !n.has(0)) return false;
  if (fold_moves(n)) return true;
  if (n.inputs() == 1 && fold_unary(n)) return true;
  if (n.inputs() == 2 && n.has(1) && fold_binary(n)) return true;
  if (n.operation() == "Where" && n.inputs() == 3) return fold_where(n);
  return fold_reduction(n);
}

inline constexpr operator_row known_tensors[]{
    {"Constant", constant_node},
    {"ConstantOfShape", constant_of_shape},
    {"NonZero", nonzero},
    {"Range", [](node_call& n) { n.set(0, range(n)); }},
};

}}}}  // namespace gshard::v0::onnx::folding

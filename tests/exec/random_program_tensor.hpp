// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "random_program_facts.hpp"

#include <gshard/core/base/dual.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <vector>

// Whole tensors of numbers or duals, and loops over their indices, for the definitions of verbs.
namespace random_program {

namespace reference {

template <class T>
struct tensor {
  std::vector<std::int64_t> extents{};
  std::vector<T> e{};

  std::int64_t extent(std::size_t d) const { return extents[d]; }
};

using gs::dual;
inline double value(double v) { return v; }
inline double value(const dual<double>& v) { return v.value; }
inline double slope_of(double) { return 0; }
inline double slope_of(const dual<double>& v) { return v.slope; }
inline double with_slope(double v, double) { return v; }
inline dual<double> with_slope(const dual<double>& v, double slope) { return {v.value, slope}; }
template <class T>
T constant_of(const T& v) {
  return with_slope(v, 0);
}
inline double as_float(double v) { return double(float(v)); }
inline dual<double> as_float(const dual<double>& v) { return {as_float(v.value), v.slope}; }

using index = std::vector<std::int64_t>;

inline std::int64_t count_of(const std::vector<std::int64_t>& extents) {
  return std::accumulate(extents.begin(), extents.end(), std::int64_t(1), std::multiplies<>());
}
/// Calls f(index) for all indices, the last dim fastest.
template <class F>
void for_each_index(const std::vector<std::int64_t>& extents, F f) {
  index at(extents.size(), 0);
  for (std::int64_t n = count_of(extents); n > 0; --n) {
    f(at);
    for (std::size_t d = at.size(); d-- > 0;) {
      if (++at[d] < extents[d]) break;
      at[d] = 0;
    }
  }
}
inline std::size_t linear(const index& at, const std::vector<std::int64_t>& extents) {
  std::int64_t n = 0;
  for (std::size_t d = 0; d < at.size(); ++d) n = n * extents[d] + at[d];
  return std::size_t(n);
}
template <class T>
const T& element(const tensor<T>& x, const index& at) {
  return x.e[linear(at, x.extents)];
}

/// The result whose element at an index is f(index).
template <class T, class F>
tensor<T> made(const std::vector<std::int64_t>& extents, F f) {
  tensor<T> y{extents, {}};
  y.e.reserve(std::size_t(count_of(extents)));
  for_each_index(extents, [&](const index& at) { y.e.push_back(f(at)); });
  return y;
}

/// The letters of an equation: of its operands, and of its output.
struct letters {
  std::vector<std::string> operands{""};
  std::string output;

  explicit letters(const std::string& text) {
    const std::size_t arrow = text.find("->");
    for (const char c : text.substr(0, arrow)) {
      if (c == ',') operands.emplace_back();
      else operands.back() += c;
    }
    output = text.substr(arrow + 2);
  }
};

/// Calls f(element of the output, elements of the operands) for all values of an equation's letters.
template <class T, class F>
void for_each_term(const std::string& text, const std::vector<const tensor<T>*>& x, F f) {
  const letters l(text);
  std::string all = l.output;
  std::map<char, std::int64_t> extent;
  for (std::size_t i = 0; i < l.operands.size(); ++i)
    for (std::size_t d = 0; d < l.operands[i].size(); ++d) {
      if (all.find(l.operands[i][d]) == std::string::npos) all += l.operands[i][d];
      extent[l.operands[i][d]] = x[i]->extent(d);
    }
  std::vector<std::int64_t> extents;
  for (const char c : all) extents.push_back(extent[c]);
  const auto part = [&](const std::string& of, const index& at) {
    std::int64_t n = 0;
    for (const char c : of) n = n * extent[c] + at[all.find(c)];
    return std::size_t(n);
  };
  for_each_index(extents, [&](const index& at) {
    std::vector<T> terms;
    for (std::size_t i = 0; i < x.size(); ++i) terms.push_back(x[i]->e[part(l.operands[i], at)]);
    f(part(l.output, at), terms);
  });
}
template <class T>
tensor<T> filled(const std::vector<std::int64_t>& extents, T v) {
  return {extents, std::vector<T>(std::size_t(count_of(extents)), v)};
}
template <class T>
tensor<T> einsum(const std::string& text, const std::vector<const tensor<T>*>& x, const std::vector<std::int64_t>& extents) {
  tensor<T> y = filled(extents, T(0));
  for_each_term(text, x, [&](std::size_t to, const std::vector<T>& terms) {
    y.e[to] = y.e[to] + (terms.size() == 1 ? terms[0] : terms[0] * terms[1]);
  });
  return y;
}

/// All terms of an equation for each element of its output.
template <class T>
std::vector<std::vector<T>> groups(const std::string& text, const tensor<T>& x, std::size_t count) {
  std::vector<std::vector<T>> all(count);
  for_each_term<T>(text, {&x}, [&](std::size_t to, const std::vector<T>& terms) { all[to].push_back(terms[0]); });
  return all;
}

inline bool is_nan(double v) { return v != v; }
/// True if a comes before b. NaN is the largest.
inline bool before(double a, double b, bool descending) {
  if (is_nan(a) || is_nan(b)) return descending ? is_nan(a) && !is_nan(b) : !is_nan(a) && is_nan(b);
  return descending ? b < a : a < b;
}
/// The largest (smallest) of these numbers; NaN if one is NaN. Equal ones share its slope.
template <class T>
T extremum(const std::vector<T>& list, bool largest) {
  T best = T(largest ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity());
  for (const T& v : list) {
    if (is_nan(value(v))) return v;
    if (largest ? value(best) < value(v) : value(v) < value(best)) best = v;
  }
  double slope = 0;
  int ties = 0;
  for (const T& v : list)
    if (value(v) == value(best)) {
      slope += slope_of(v);
      ++ties;
    }
  return ties > 1 ? with_slope(best, slope / ties) : best;
}
template <class T>
T logsumexp(const std::vector<T>& list) {
  const T most = constant_of(extremum(list, true));
  if (!std::isfinite(value(most))) return most;
  T sum = T(0);
  for (const T& v : list) sum = sum + gs::exp(v - most);
  return gs::log(sum) + most;
}

/// Calls f(row) for all rows along one dim. f changes the row in place or replaces it.
template <class T, class F>
tensor<T> along(const tensor<T>& x, std::size_t dim, const std::vector<std::int64_t>& extents, F f) {
  tensor<T> y = filled(extents, T(0));
  std::vector<std::int64_t> rows = x.extents;
  rows[dim] = 1;
  for_each_index(rows, [&](const index& first) {
    index at = first;
    std::vector<T> row;
    for (at[dim] = 0; at[dim] < x.extent(dim); ++at[dim]) row.push_back(element(x, at));
    row = f(row);
    for (at[dim] = 0; at[dim] < extents[dim]; ++at[dim]) y.e[linear(at, extents)] = row[std::size_t(at[dim])];
  });
  return y;
}

/// For every dim of an elementwise result, the matching dim of an operand, or -1.
inline std::vector<int> matched(const gs::dim_list& operand, const gs::dim_list& result) {
  std::vector<int> of(std::size_t(result.size()), -1);
  ways_to_match(operand, result, &of);
  return of;
}
template <class T>
T broadcast(const tensor<T>& x, const std::vector<int>& of, const index& at) {
  index from(x.extents.size());
  for (std::size_t r = 0; r < of.size(); ++r)
    if (of[r] >= 0) from[std::size_t(of[r])] = at[r];
  return element(x, from);
}

/// The element of a dim that an index reads at a tap of a window, or -1.
inline std::int64_t read_by(const gs::conv_window& w, std::int64_t i, std::int64_t extent, std::int64_t tap) {
  const std::int64_t p = w.stride * i - w.low + w.step * tap;
  return p >= 0 && p % w.dilation == 0 && p / w.dilation < extent ? p / w.dilation : -1;
}

}  // namespace reference

}  // namespace random_program

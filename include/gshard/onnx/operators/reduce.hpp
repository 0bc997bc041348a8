// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// ONNX's reductions, softmax and its relatives, running sums, and the largest elements.

#include <gshard/onnx/node/arithmetic.hpp>
#include <gshard/onnx/node/indices.hpp>
#include <gshard/onnx/node/node_call.hpp>
#include <gshard/onnx/node/numpy.hpp>
#include <gshard/onnx/node/scalar_functions.hpp>
#include <gshard/ops/along/cumsum.hpp>
#include <gshard/ops/along/sort.hpp>
#include <gshard/ops/reduce/argmax.hpp>
#include <gshard/ops/rows/softmax.hpp>
#include <gshard/ops/window/reverse.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx { namespace operators {

inline std::vector<int> all_dims(int rank) {
  std::vector<int> all(static_cast<std::size_t>(rank));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// The dims of a reduction. `since`: the version from which they are an input.
struct reduced_dims {
  std::vector<int> dims;
  bool keeps = true, is_identity = false;
};
inline reduced_dims dims_of_reduction(node_call& n, int since) {
  const bool by_input = n.opset() >= since;
  const std::vector<std::int64_t> stated = by_input ? (n.has(1) ? n.known_integers(1) : std::vector<std::int64_t>{}) : n.integers("axes");
  reduced_dims r{node_call::dims(stated, n.rank(0)), n.integer("keepdims", 1) != 0};
  const bool none = n.integer("noop_with_empty_axes", 0) != 0;
  if (stated.empty() && none)
    r.is_identity = true;
  else if (stated.empty())
    r.dims = all_dims(n.rank(0));
  return r;
}

/// before(x), reduced, then after(y). f: a reduction of a tensor over dims.
template <class Before, class After>
void reduce_by(node_call& n, reduction what, int since, Before before, After after) {
  const reduced_dims r = dims_of_reduction(n, since);
  const symbol x = before(n.number(0));
  n.set(0, wrapped(after(r.is_identity ? x : reduced(x, what, r.dims, r.keeps)), n.type(0)), n.type(0));
}
inline constexpr auto unchanged = [](symbol x) { return x; };
inline symbol absolute(symbol x) {
  if (is_real(x.get().type)) return mapped<functions::absolute{}, 1>({x});
  return chosen(less_than(x, scalar_like(x, 0)), scaled(x, -1), x);
}
inline symbol squared(symbol x) {
  return product(x, x);
}
/// A function of real numbers; integers are rounded towards zero.
template <auto F>
symbol of_reals(symbol x) {
  const dtype type = x.get().type;
  if (is_real(type)) return mapped<F, 1>({x});
  return checked(cast(mapped<F, 1>({checked(cast(x, dtype::f64))}), type));
}

inline void reduce_sum_of(node_call& n) {
  reduce_by(n, reduction::sum, 13, unchanged, unchanged);
}
inline void reduce_max_of(node_call& n) {
  comparable(n, 0);
  reduce_by(n, reduction::max, 18, unchanged, unchanged);
}
inline void reduce_min_of(node_call& n) {
  comparable(n, 0);
  reduce_by(n, reduction::min, 18, unchanged, unchanged);
}
inline void reduce_product_of(node_call& n) {
  reduce_by(n, reduction::prod, 18, unchanged, unchanged);
}
inline void reduce_mean_of(node_call& n) {
  const reduced_dims r = dims_of_reduction(n, 18);
  const symbol x = n.number(0);
  if (r.is_identity) return n.set(0, x, n.type(0));
  std::int64_t count = 1;
  for (const int d : r.dims) count *= n.extents(0)[std::size_t(d)];
  const symbol total = summed(x, r.dims, r.keeps);
  n.set(0, is_real(x.get().type) ? scaled(total, 1 / double(count)) : divided(total, scalar_like(total, double(count))), n.type(0));
}
inline void reduce_l1(node_call& n) {
  reduce_by(n, reduction::sum, 18, absolute, unchanged);
}
inline void reduce_l2(node_call& n) {
  reduce_by(n, reduction::sum, 18, squared, of_reals<functions::sqrt{}>);
}
inline void reduce_log_sum(node_call& n) {
  reduce_by(n, reduction::sum, 18, unchanged, of_reals<functions::log{}>);
}
inline void reduce_sum_square(node_call& n) {
  reduce_by(n, reduction::sum, 18, squared, unchanged);
}

/// log(sum exp x) over dims, from the largest element.
inline symbol log_sum_exp(symbol x, const std::vector<int>& over, bool keeps) {
  const symbol top = reduced(x, reduction::max, over, true);
  const symbol total = summed(mapped<functions::exp_of_difference{}, 2>({x, top}), over, true);
  const symbol y = mapped<functions::log_plus{}, 2>({total, top});
  extent_list to;
  for (int d = 0; d < x.rank(); ++d)
    if (keeps || std::find(over.begin(), over.end(), d) == over.end()) to.push_back(extents_of(y)[std::size_t(d)]);
  return reshaped(y, to);
}
inline void reduce_log_sum_exp(node_call& n) {
  const reduced_dims r = dims_of_reduction(n, 18);
  const symbol x = n.real(0);
  n.set(0, r.is_identity ? x : log_sum_exp(x, r.dims, r.keeps), n.type(0));
}

/// Softmax over these dims.
inline symbol softmax_over(symbol x, const std::vector<int>& over) {
  if (over.size() == 1 && over[0] == x.rank() - 1) return checked(softmax(x));
  const symbol top = reduced(x, reduction::max, over, true);
  const symbol e = mapped<functions::exp_of_difference{}, 2>({x, top});
  return quotient(e, summed(e, over, true));
}
inline symbol log_softmax_over(symbol x, const std::vector<int>& over) {
  return difference(x, log_sum_exp(x, over, true));
}
/// The dims of softmax: since version 13 one, before all from `axis` on.
inline std::vector<int> softmax_dims(node_call& n) {
  const int rank = n.rank(0);
  if (n.opset() >= 13) return {node_call::dim(n.integer("axis", -1), rank)};
  std::vector<int> over;
  for (int d = node_call::dim(n.integer("axis", 1), rank); d < rank; ++d) over.push_back(d);
  return over;
}
inline void softmax_rows(node_call& n) {
  const symbol x = n.real(0);
  n.set(0, softmax_over(x, softmax_dims(n)), n.type(0));
}
inline void log_softmax_rows(node_call& n) {
  const symbol x = n.real(0);
  n.set(0, log_softmax_over(x, softmax_dims(n)), n.type(0));
}

/// The index of the largest, or smallest, element along a dim, int32. The first or the last of several.
inline symbol extremum_index(symbol x, int at, bool largest, bool last, bool keeps) {
  if (!is_real(x.get().type)) x = checked(cast(x, dtype::f64));
  const std::string own = letters_of(x.rank());
  std::string to = own;
  to.erase(std::size_t(at), 1);
  const symbol from = last ? checked(reverse(x, at)) : x;
  symbol ids = checked(largest ? argmax(own + "->" + to, here(from)) : argmin(own + "->" + to, here(from)));
  if (last) ids = difference(scalar_like(ids, double(extents_of(x)[std::size_t(at)] - 1)), ids);
  return keeps ? with_dim(ids, at) : ids;
}
inline void arg_extremum(node_call& n, bool largest) {
  const int at = node_call::dim(n.integer("axis", 0), n.rank(0));
  const bool keeps = n.integer("keepdims", 1) != 0, last = n.integer("select_last_index", 0) != 0;
  if (n.type(0) == element::i64 || n.type(0) == element::u64)
    throw error("compares elements of type " + name(n.type(0)) + ", which gshard does not");
  n.set(0, extremum_index(n.number(0), at, largest, last, keeps), element::i64);
}
inline void hardmax(node_call& n) {
  const symbol x = n.real(0);
  const std::vector<int> over = softmax_dims(n);
  extent_list rows = n.extents(0);
  rows.resize(std::size_t(over.front()));
  const int at = int(rows.size());
  std::int64_t columns = 1;
  for (const int d : over) columns *= n.extents(0)[std::size_t(d)];
  const bool one = over.size() == 1;
  if (!one) rows.push_back(columns);
  const symbol flat = one ? x : reshaped(x, rows);
  const int dim = one ? over[0] : at;
  const symbol best = extremum_index(flat, dim, true, false, true);
  const symbol hit = equals(best, index_along(n.program(), extents_of(flat), dim));
  n.set(0, reshaped(checked(cast(hit, x.get().type)), n.extents(0)), n.type(0));
}

inline void cumulative_sum(node_call& n) {
  const int at = node_call::dim(n.known(1).integer(0), n.rank(0));
  const bool exclusive = n.integer("exclusive", 0) != 0, reversed = n.integer("reverse", 0) != 0;
  if (n.type(0) == element::i64 || n.type(0) == element::u64)
    throw error("adds elements of type " + name(n.type(0)) + ", which gshard does not");
  symbol x = n.number(0);
  const bool is_real_sum = is_real(x.get().type);
  if (!is_real_sum) x = checked(cast(x, dtype::f64));
  const symbol y = checked(cumsum(x, at, exclusive, reversed));
  n.set(0, is_real_sum ? y : wrapped(checked(cast(y, dtype::i64)), n.type(0)), n.type(0));
}
inline void top_elements(node_call& n) {
  const std::int64_t k = n.opset() < 10 ? n.integer("k") : n.known(1).integer(0);
  const int at = node_call::dim(n.integer("axis", -1), n.rank(0));
  const bool largest = n.integer("largest", 1) != 0;
  n.ignore({"sorted"});
  if (n.type(0) == element::i64 || n.type(0) == element::u64)
    throw error("compares elements of type " + name(n.type(0)) + ", which gshard does not");
  if (k < 1 || k > n.extents(0)[std::size_t(at)])
    throw error("takes " + std::to_string(k) + " elements of a dim of " + std::to_string(n.extents(0)[std::size_t(at)]));
  symbol x = n.number(0);
  if (!is_real(x.get().type)) x = checked(cast(x, dtype::f64));
  const sorted best = top_k(x, int(k), at, largest);
  n.set(0, checked(best.values), n.type(0));
  n.set(1, checked(best.ids), element::i64);
}

inline constexpr operator_row reductions[]{
    {"ArgMax", [](node_call& n) { arg_extremum(n, true); }},
    {"ArgMin", [](node_call& n) { arg_extremum(n, false); }},
    {"CumSum", cumulative_sum},
    {"Hardmax", hardmax},
    {"LogSoftmax", log_softmax_rows},
    {"ReduceL1", reduce_l1},
    {"ReduceL2", reduce_l2},
    {"ReduceLogSum", reduce_log_sum},
    {"ReduceLogSumExp", reduce_log_sum_exp},
    {"ReduceMax", reduce_max_of},
    {"ReduceMean", reduce_mean_of},
    {"ReduceMin", reduce_min_of},
    {"ReduceProd", reduce_product_of},
    {"ReduceSum", reduce_sum_of},
    {"ReduceSumSquare", reduce_sum_square},
    {"Softmax", softmax_rows},
    {"TopK", top_elements},
};

}}}}  // namespace gshard::v0::onnx::operators

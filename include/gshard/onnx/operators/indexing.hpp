// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// ONNX's operators that look up elements by index: gathers, scatters, one-hot rows, triangles.

#include <gshard/onnx/node/arithmetic.hpp>
#include <gshard/onnx/node/indices.hpp>
#include <gshard/onnx/node/node_call.hpp>
#include <gshard/onnx/node/numpy.hpp>
#include <gshard/ops/index/gather.hpp>
#include <gshard/ops/window/pad.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx { namespace operators {

inline void gather_rows(node_call& n) {
  const int at = node_call::dim(n.integer("axis", 0), n.rank(0));
  const symbol ids = indices(n, 1, n.extents(0)[std::size_t(at)]);
  n.set(0, checked(gather(n.tensor(0), ids, at)), n.type(0));
}

/// x, cut to the extents of the indices in all dims but one.
inline symbol cut_to(symbol x, const extent_list& extents, int except) {
  for (int d = 0; d < int(extents.size()); ++d)
    if (d != except) x = sliced(x, d, 0, extents[std::size_t(d)]);
  return x;
}
inline void gather_elements(node_call& n) {
  const int rank = n.rank(0), at = node_call::dim(n.integer("axis", 0), rank);
  if (n.rank(1) != rank) throw error("has indices of " + std::to_string(n.rank(1)) + " dims for a tensor of " + std::to_string(rank));
  const symbol table = moved_dim(cut_to(n.tensor(0), n.extents(1), at), at, rank - 1);
  const symbol ids = moved_dim(indices(n, 1, n.extents(0)[std::size_t(at)]), at, rank - 1);
  n.set(0, moved_dim(checked(gather(table, ids, rank - 1, rank - 1)), rank - 1, at), n.type(0));
}

/// The row of each index tuple, the last dim of `tuples`, in a table with these extents.
inline symbol rows_of_tuples(symbol tuples, const extent_list& extents) {
  const int last = tuples.rank() - 1;
  symbol rows{};
  for (std::size_t k = 0; k < extents.size(); ++k) {
    symbol at = without_dim(sliced(tuples, last, std::int64_t(k), std::int64_t(k) + 1), last);
    const symbol from_back = sum_of(at, scalar_like(at, double(extents[k])));
    at = chosen(less_than(at, scalar_like(at, 0)), from_back, at);
    rows = k == 0 ? at : sum_of(scaled(rows, double(extents[k])), at);
  }
  return rows;
}
inline symbol index_tuples(node_call& n, std::size_t i) {
  const symbol tuples = n.tensor(i);
  return tuples.get().type == dtype::i32 ? tuples : checked(cast(tuples, dtype::i32));
}
inline void gather_nd(node_call& n) {
  const auto batch = std::size_t(n.integer("batch_dims", 0));
  const extent_list &own = n.extents(0), &given = n.extents(1);
  const auto count = std::size_t(given.back());
  if (count == 0 || batch + count > own.size() || batch >= given.size())
    throw error("has indices " + text_of(given) + " for " + text_of(own));
  const extent_list looked_up(own.begin() + std::ptrdiff_t(batch), own.begin() + std::ptrdiff_t(batch + count));
  extent_list flat(own.begin(), own.begin() + std::ptrdiff_t(batch));
  flat.push_back(count_elements(looked_up));
  flat.insert(flat.end(), own.begin() + std::ptrdiff_t(batch + count), own.end());
  const symbol rows = rows_of_tuples(index_tuples(n, 1), looked_up);
  n.set(0, checked(gather(reshaped(n.tensor(0), flat), rows, int(batch), int(batch))), n.type(0));
}

/// f of a tensor of real numbers, for tensors of any type: 64-bit integers in two halves.
template <class F>
symbol by_reals(symbol x, const F& f) {
  const dtype type = x.get().type;
  if (is_real(type)) return f(x);
  if (type != dtype::i64) return checked(cast(f(checked(cast(x, type == dtype::i32 ? dtype::f64 : dtype::f32))), type));
  const symbol size = scalar_like(x, 0x1p31), twice = sum_of(size, size);
  const symbol low = mapped(detail::own_function<detail::arithmetic::modulo>, {x, twice});
  const symbol high = divided(difference(x, low), twice);
  const auto part = [&](symbol s) { return checked(cast(f(checked(cast(s, dtype::f64))), type)); };
  const symbol upper = part(high), lower = part(low);
  return sum_of(product(upper, twice), lower);
}

/// data, with rows of `updates` in place of, or added to, its rows with these ids along dim `at`. `batch`: as in gather. The dims of data
/// may be longer than those of the updates.
inline symbol scattered(node_call& n, symbol data, symbol ids, symbol updates, int at, int batch, const extent_list& table) {
  const std::string how = n.text("reduction", "none");
  if (how != "none" && how != "add") n.refuse("reduction");
  const extent_list whole = extents_of(data);
  const auto added = [&](symbol rows, extent_list extents) {
    symbol all = checked(scatter_add(filled(n.program(), rows.get().type, extents, 0), ids, rows, at, batch));
    for (std::size_t d = 0; d < extents.size(); ++d)
      if (extents[d] < whole[d]) all = checked(pad(all, int(d), 0, int(whole[d] - extents[d])));
    return all;
  };
  const symbol sums = by_reals(updates, [&](symbol rows) { return added(rows, table); });
  if (how == "add") return sum_of(data, sums);
  const symbol ones = filled(n.program(), dtype::f32, extents_of(updates), 1);
  return chosen(checked(cast(added(ones, table), data.get().type)), sums, data);
}
inline void scatter_elements(node_call& n) {
  const int rank = n.rank(0), last = rank - 1, at = node_call::dim(n.integer("axis", 0), rank);
  const symbol data = moved_dim(n.tensor(0), at, last), updates = moved_dim(n.tensor(2), at, last);
  const symbol ids = moved_dim(indices(n, 1, n.extents(0)[std::size_t(at)]), at, last);
  extent_list table = extents_of(ids);
  table.back() = n.extents(0)[std::size_t(at)];
  n.set(0, moved_dim(scattered(n, data, ids, updates, last, last, table), last, at), n.type(0));
}
inline void scatter_nd(node_call& n) {
  const extent_list &own = n.extents(0), &given = n.extents(1);
  const auto count = std::size_t(given.back());
  if (count == 0 || count > own.size()) throw error("has indices " + text_of(given) + " for " + text_of(own));
  const extent_list looked_up(own.begin(), own.begin() + std::ptrdiff_t(count));
  extent_list flat{count_elements(looked_up)};
  flat.insert(flat.end(), own.begin() + std::ptrdiff_t(count), own.end());
  symbol rows = rows_of_tuples(index_tuples(n, 1), looked_up);
  const std::int64_t updates = elements_of(rows);
  extent_list rows_of_updates = flat;
  rows_of_updates[0] = updates;
  rows = reshaped(rows, {updates});
  const symbol changed = scattered(n, reshaped(n.tensor(0), flat), rows, reshaped(n.tensor(2), rows_of_updates), 0, 0, flat);
  n.set(0, reshaped(changed, own), n.type(0));
}

inline void one_hot_rows(node_call& n) {
  const std::int64_t depth = n.known(1).integer(0);
  const int at = node_call::dim(n.integer("axis", -1), n.rank(0) + 1);
  symbol ids = n.number(0);
  if (ids.get().type != dtype::i32) ids = checked(cast(ids, dtype::i32));
  ids = chosen(less_than(ids, scalar_like(ids, 0)), sum_of(ids, scalar_like(ids, double(depth))), ids);
  extent_list extents(std::size_t(n.rank(0) + 1), 1);
  extents[std::size_t(at)] = depth;
  const symbol places = index_along(n.program(), extents, at), hit = equals(with_dim(ids, at), places);
  const symbol both = n.tensor(2), off = without_dim(sliced(both, 0, 0, 1), 0), on = without_dim(sliced(both, 0, 1, 2), 0);
  n.set(0, chosen(checked(cast(hit, both.get().type)), on, off), n.type(2));
}

/// column - row of the last two dims, int32.
inline symbol diagonals(builder& b, const extent_list& extents) {
  const extent_list last(extents.end() - 2, extents.end());
  const symbol columns = index_along(b, last, 1), rows = index_along(b, last, 0);
  return difference(columns, rows);
}
inline void triangle(node_call& n) {
  const std::int64_t k = n.has(1) ? n.known(1).integer(0) : 0;
  const bool upper = n.integer("upper", 1) != 0;
  if (n.rank(0) < 2) throw error("takes a triangle of a tensor of " + std::to_string(n.rank(0)) + " dims");
  const symbol x = n.tensor(0), at = diagonals(n.program(), n.extents(0)),
               limit = scalar_like(at, double(std::clamp<std::int64_t>(k, -(1 << 30), 1 << 30)));
  const symbol kept = upper ? mapped(detail::own_function<detail::arithmetic::at_most>, {limit, at})
                            : mapped(detail::own_function<detail::arithmetic::at_most>, {at, limit});
  n.set(0, chosen(checked(cast(kept, x.get().type)), x, scalar_like(x, 0)), n.type(0));
}
inline void eye_like(node_call& n) {
  const element type = n.states("dtype") ? element_of(n.integer("dtype")) : n.type(0);
  const std::int64_t k = n.integer("k", 0);
  if (n.rank(0) != 2 || traits(type).carrier == dtype::count_) n.refuse("dtype");
  const symbol at = diagonals(n.program(), n.extents(0));
  n.set(0, checked(cast(equals(at, scalar_like(at, double(k))), traits(type).carrier)), type);
}

inline void reverse_sequence(node_call& n) {
  const int batch = node_call::dim(n.integer("batch_axis", 1), n.rank(0)), time = node_call::dim(n.integer("time_axis", 0), n.rank(0));
  if (batch + time != 1) throw error("has a batch_axis and a time_axis that are not the first two dims");
  const symbol x = batch == 0 ? n.tensor(0) : moved_dim(n.tensor(0), 1, 0);
  const extent_list own = extents_of(x);
  const symbol lengths = with_dim(checked(cast(n.tensor(1), dtype::i32)), 1), step = index_along(n.program(), {1, own[1]}, 1);
  const symbol turned = difference(difference(lengths, scalar_like(step, 1)), step);
  const symbol from = chosen(less_than(step, lengths), turned, expanded(step, {own[0], own[1]}));
  const symbol y = checked(gather(x, from, 1, 1));
  n.set(0, batch == 0 ? y : moved_dim(y, 1, 0), n.type(0));
}

inline void compress(node_call& n) {
  const constant& condition = n.known(1);
  const bool has_axis = n.states("axis");
  const int at = has_axis ? node_call::dim(n.integer("axis"), n.rank(0)) : 0;
  const symbol x = has_axis ? n.tensor(0) : reshaped(n.tensor(0), {count_elements(n.extents(0))});
  std::vector<std::int64_t> kept;
  for (std::size_t i = 0; i < condition.size() && std::int64_t(i) < extents_of(x)[std::size_t(at)]; ++i)
    if (condition.integers[i] != 0) kept.push_back(std::int64_t(i));
  n.set(0, taken(n, x, at, kept), n.type(0));
}

inline constexpr operator_row indexing[]{
    {"Compress", compress},
    {"EyeLike", eye_like},
    {"Gather", gather_rows},
    {"GatherElements", gather_elements},
    {"GatherND", gather_nd},
    {"OneHot", one_hot_rows},
    {"ReverseSequence", reverse_sequence},
    {"Scatter", scatter_elements},
    {"ScatterElements", scatter_elements},
    {"ScatterND", scatter_nd},
    {"Trilu", triangle},
};

}}}}  // namespace gshard::v0::onnx::operators

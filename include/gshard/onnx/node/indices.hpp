// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Indices into dims: known ones as constants, and computed ones that may count from the back.

#include <gshard/core/trace/iota.hpp>
#include <gshard/onnx/node/imported_value.hpp>
#include <gshard/onnx/node/node_call.hpp>
#include <gshard/onnx/node/numpy.hpp>
#include <gshard/ops/index/gather.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx {

/// Known integers as an int32 tensor of the program.
inline symbol index_tensor(import_state& state, const std::vector<std::int64_t>& all, const extent_list& extents) {
  constant c = integers_of(all, element::i32);
  c.extents = extents;
  imported_value v = value_of(std::move(c));
  return tensor_of(state, v);
}
/// A known tensor of real numbers in the program.
inline symbol real_tensor(import_state& state, const std::vector<double>& all, const extent_list& extents, dtype type) {
  constant c = empty_like(type == dtype::f64 ? element::f64 : element::f32, extents);
  for (const double x : all) c.reals.push_back(rounded(c.type, x));
  imported_value v = value_of(std::move(c));
  return tensor_of(state, v);
}

/// The elements of x with these known indices along a dim.
inline symbol taken(node_call& n, symbol x, int dim, const std::vector<std::int64_t>& from) {
  bool is_range = true;
  for (std::size_t i = 0; i < from.size(); ++i) is_range = is_range && from[i] == from[0] + std::int64_t(i);
  if (from.empty()) return sliced(x, dim, 0, 0);
  const std::int64_t own = extents_of(x)[std::size_t(dim)], count = std::int64_t(from.size()), times = own > 0 ? count / own : 0;
  bool repeats = times > 1 && times * own == count && x.rank() < max_rank;
  for (std::int64_t i = 0; repeats && i < count; ++i) repeats = from[std::size_t(i)] == i / times;
  if (repeats) return repeated(x, dim, times);
  if (is_range) return sliced(x, dim, from[0], from[0] + std::int64_t(from.size()));
  return checked(gather(x, index_tensor(n.state(), from, {std::int64_t(from.size())}), dim));
}

/// 0, 1, ... along a dim of a tensor with these extents, int32.
inline symbol index_along(builder& b, const extent_list& extents, int dim) {
  return checked(detail::emit_iota(b, fixed_dims(b, extents), dim));
}

/// The indices of an input, int32 and not negative. `extent`: of the dim that they index.
inline symbol indices(node_call& n, std::size_t i, std::int64_t extent) {
  if (!is_integer(n.type(i))) throw error("has indices of type " + name(n.type(i)));
  if (n.is_known(i)) {
    std::vector<std::int64_t> all = n.known_integers(i);
    for (std::int64_t& at : all) {
      if (at < -extent || at >= extent) throw error("has the index " + std::to_string(at) + " for a dim of " + std::to_string(extent));
      if (at < 0) at += extent;
    }
    return index_tensor(n.state(), all, n.extents(i));
  }
  symbol ids = n.tensor(i);
  if (ids.get().type != dtype::i32) ids = checked(cast(ids, dtype::i32));
  const symbol zero = scalar_like(ids, 0), from_back = sum_of(ids, scalar_like(ids, double(extent)));
  return chosen(less_than(ids, zero), from_back, ids);
}

}}}  // namespace gshard::v0::onnx

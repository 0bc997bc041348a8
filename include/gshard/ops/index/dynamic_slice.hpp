// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Slices whose start is a tensor: dynamic_slice, and dynamic_update_slice for caches of keys and values.

#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/iota.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/select.hpp>
#include <gshard/ops/index/gather.hpp>
#include <gshard/ops/reduce/reduce.hpp>

#include <array>
#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 {

namespace detail {

/// The indices 0, 1, ... along a dim, as a vector of this dim.
constexpr symbol emit_indices(builder& b, int dim) {
  dim_list dims;
  dims.push_back(dim);
  return emit_iota(b, dims, 0);
}
/// The last index along a dim, a scalar.
constexpr symbol emit_last_index(builder& b, int dim) {
  if (b.failed()) return b.nothing();
  const symbol all = emit_indices(b, dim);
  sharding_rule rule;
  rule.in[0] = counting(1);
  return {&b, b.add_node(op::reduce, {all.id}, rule, {.combine = reduction::max}, {{dim_list{}, dtype::i32}})};
}
/// x, clamped to [0, most].
constexpr symbol emit_clamped(symbol x, symbol most) {
  if (x.owner->failed()) return x.owner->nothing();
  const symbol below = select(less(most, x), most, x);
  return select(less(below, 0), 0, below);
}
constexpr bool check_start(symbol x, symbol start, int dim, std::string_view operation) {
  builder& b = *x.owner;
  if (!b.has(x) || !b.has(start) || !check_dim(x, dim, operation)) return false;
  if (start.rank() != 0) b.fail(fault::not_a_scalar, operation, {}, 0, start.rank());
  if (start.get().type != dtype::i32) b.fail_type(operation, "start", start.get().type, only(dtype::i32));
  return !b.failed();
}
/// The start, clamped as in XLA: a slice with the extent of the dim `size` is inside of x.
constexpr symbol emit_start(symbol x, symbol start, int dim, int size) {
  builder& b = *x.owner;
  const symbol last = emit_last_index(b, x.get().dims[dim]), last_taken = emit_last_index(b, size);
  return emit_clamped(start, here(last) - last_taken);
}

}  // namespace detail

/// dynamic_slice(x, dim, start, size): `size` elements of x along `dim`, from index `start` on. As in XLA, the start is clamped so that the
/// slice is inside of x: to [0, extent - size]. Its gradient is zero outside of the slice.
/// Shapes: x [A..., N, C...], an int32 scalar -> [A..., size, C...].
/// Communicates: nothing, or, if the dim is sharded, as gather: the sum of the devices' parts of the slice.
/// Compile time: that x has this dim; a scalar int32 start; a size above 0, and at most the extent if that is known.
/// Throws: `gshard::error` on all processes, if the slice is longer than the dim.
/// @see dynamic_update_slice, slice, gather
constexpr symbol dynamic_slice(here x, int dim, symbol start, int size) {
  builder& b = *x.owner;
  const line_of_call kept(b);
  if (b.failed() || !detail::check_start(x, start, dim, "dynamic_slice")) return b.nothing();
  const std::int64_t extent = b.known_extent(x.get().dims[dim]);
  if (size < 1) b.fail_range("dynamic_slice", "size", size);
  else if (extent >= 0 && size > extent) b.fail_range("dynamic_slice", "size, extent of x", size, extent);
  if (b.failed()) return b.nothing();
  const int taken = b.fixed_dim(size);
  const symbol first = detail::emit_start(x, start, dim, taken);
  if (b.failed()) return b.nothing();
  const symbol rows = gather(x, here(detail::emit_indices(b, taken)) + first, dim);
  if (!b.failed()) b.program.nodes.back().attr.inside = size == 1 || extent >= 0;
  return rows;
}
/// dynamic_slice<1, 8>(x, start): the same with its numbers as template arguments, as on tensors outside of programs.
template <int Dim, int Size>
constexpr symbol dynamic_slice(here x, symbol start) {
  return dynamic_slice(x, Dim, start, Size);
}

/// dynamic_update_slice(x, update, dim, start): x, with `update` in place of its elements along `dim` from index `start` on. The start is
/// clamped as in dynamic_slice. `m.update(cache, dynamic_update_slice(cache, key, 1, step))` writes into the memory of a variable. Tensors
/// of every element type can be updated, such as caches in bf16.
/// Shapes: x [A..., N, C...], update [A..., U, C...], an int32 scalar -> the shape of x.
/// Communicates: nothing if update has the sharding of x in the other dims, and all devices have it along `dim`. x stays where it is.
/// Compile time: ranks, dims and equal element types. If both extents are known, that the update is not longer than x.
/// Throws: `gshard::error` on all processes, if the update is longer than the dim, or has no elements.
/// @see dynamic_slice
constexpr symbol dynamic_update_slice(here x, symbol update, int dim, symbol start) {
  builder& b = *x.owner;
  const line_of_call kept(b);
  if (b.failed() || !b.has(update) || !detail::check_start(x, start, dim, "dynamic_update_slice")) return b.nothing();
  if (update.rank() != x.rank()) b.fail(fault::rank_mismatch, "dynamic_update_slice", {}, x.rank(), update.rank());
  for (int d = 0; d < x.rank() && !b.failed(); ++d)
    if (d != dim && !b.same_extent(update.get().dims[d], x.get().dims[d])) b.fail(fault::dims_differ, "dynamic_update_slice", {}, 1, d);
  if (const dtype type = x.get().type; !b.failed() && update.get().type != type)
    b.fail_type("dynamic_update_slice", 1, update.get().type, only(type));
  if (b.failed()) return b.nothing();
  const int size = update.get().dims[dim];
  const std::int64_t extent = b.known_extent(x.get().dims[dim]), given = b.known_extent(size);
  if (extent >= 0 && given > extent) b.fail_range("dynamic_update_slice", "extent of update, of x", given, extent);
  const symbol first = detail::emit_start(x, start, dim, size);
  if (b.failed()) return b.nothing();
  const symbol offset = here(detail::emit_indices(b, x.get().dims[dim])) - first, last = detail::emit_last_index(b, size);
  symbol id = detail::emit_clamped(offset, last);
  if (b.failed()) return b.nothing();
  const bool fits = given == 1 || (extent >= 0 && given >= 0);
  if (!fits) {  // if the update is longer than the dim: ids that gather refuses
    const symbol too_long = gshard::less(detail::emit_last_index(b, x.get().dims[dim]), last);
    if (b.failed()) return b.nothing();
    id = here(id) + gshard::select(too_long, here(last) + 1, 0);
    if (b.failed()) return b.nothing();
  }
  const symbol inside = detail::emit_cast(gshard::equal(id, offset), x.get().type), rows = gather(update, id, dim);
  if (b.failed()) return b.nothing();
  b.program.nodes.back().attr.inside = fits;
  short_list along;
  along.push_back(dim);
  const short_list all = detail::counting(x.rank());
  return detail::emit_map_of(detail::choice<>, std::array<symbol, 3>{inside, rows, x}, std::array{along, all, all}, x);
}
/// dynamic_update_slice<1>(x, update, start): the same with its numbers as template arguments, as on tensors outside of programs.
template <int Dim>
constexpr symbol dynamic_update_slice(here x, symbol update, symbol start) {
  return dynamic_update_slice(x, update, Dim, start);
}

GSHARD_TAKES_NUMBERS(dynamic_slice, (detail::call<4, symbol, int, symbol, int>::fits<Given...>), 2, 2, int,
                     (detail::tensors<2>::fits<Given...>),
                     "dynamic_slice(x, dim, start, size) takes a tensor of a program, a dim, an int32 scalar of a program and a number")
GSHARD_TAKES_NUMBERS(dynamic_update_slice, (detail::call<4, symbol, symbol, int, symbol>::fits<Given...>),
                     1, 1, int, (detail::tensors<3>::fits<Given...>),
                     "dynamic_update_slice(x, update, dim, start) takes two tensors of a program, a dim and an int32 scalar")

}}  // namespace gshard::v0

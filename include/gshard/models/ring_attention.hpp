// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Ring attention: a sequence is sharded over a mesh axis, and devices pass blocks of its keys and values around a ring.

#include <gshard/core/base/fixed_string.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/select.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/ops/attention/attention.hpp>
#include <gshard/ops/shards/collectives.hpp>
#include <gshard/ops/shards/per_shard.hpp>

#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 { namespace nn {

/// Options of `ring_attention`. @see attention_options
struct ring_attention_options {
  bool causal = false;
  symbol mask{};  ///< [batch..., T]: 1, or 0 at positions that no query sees.
};

namespace detail {
using namespace gshard::detail;

/// An axis shards dim `at`. The other dims are open.
constexpr sharding sharded_only(int rank, int at, int axis) {
  sharding s = sharding::replicated(rank);
  s[at] = one_axis(axis);
  s.open = std::uint8_t(((1u << rank) - 1u) & ~(1u << at));
  return s;
}

/// Splits dim `at` of x, which the axis shards, into two: the devices along the axis, and their blocks.
template <class = void>
constexpr symbol emit_blocks(symbol x, int at, int axis) {
  builder& b = *x.owner;
  const int devices = device_dim(b, axis);
  const sharding whole = sharded_only(x.rank(), at, axis);
  const symbol sharded = emit_annotate(x, whole);
  const symbol y = emit_split(sharded, at, devices, part_dim(b, devices, x.get().dims[at]));
  if (b.failed()) return y;
  sharding blocks = with_dim(whole, at, one_axis(axis));
  blocks[at + 1] = {};
  return emit_annotate(y, blocks);
}

/// For each device along an axis: the position of its first query, counted from the first key of the block that it has after `steps` steps.
template <class = void>
constexpr symbol emit_ring_position(symbol q, int devices_at, std::string_view axis, int devices, int steps) {
  builder& b = *q.owner;
  const symbol device = emit_device_index(b, axis);
  if (b.failed()) return device;
  dim_list block;
  block.push_back(q.get().dims[devices_at + 1]);
  const symbol blocks = double(-devices) * less(device, double(steps)) + double(steps);
  return cast(emit_scale(cast(blocks, dtype::f64), 1, block, 1), dtype::i32);
}

template <class = void>
constexpr symbol emit_ring_attention(symbol q, symbol k, symbol v, const ring_attention_options& o, std::string_view axis_name) {
  builder& b = *q.owner;
  const int axis = axis_called(b, axis_name, "ring_attention");
  if (!require_real(b, "ring_attention", {q, k, v})) return b.nothing();
  const int devices = b.mesh.static_extent(axis), at = k.rank() - 3;
  if (devices == dynamic) b.fail(fault::axis_not_static, "ring_attention", axis_name);
  if (at < 0) b.fail(fault::rank_mismatch, "ring_attention", {}, 3, k.rank());
  if (!b.failed() && (q.rank() <= at || !b.same_extent(q.get().dims[at], k.get().dims[at])))
    b.fail(fault::dims_differ, "ring_attention", {}, 1, at);
  if (b.failed()) return b.nothing();
  const symbol queries = emit_blocks(q, at, axis);
  symbol keys = emit_blocks(k, at, axis), values = emit_blocks(v, at, axis);
  symbol mask = o.mask;
  if (mask.id >= 0) mask = mask.rank() == at + 1 ? emit_blocks(mask, at, axis) : b.nothing();
  if (o.mask.id >= 0 && mask.id < 0) b.fail(fault::rank_mismatch, "ring_attention", {}, at + 1, o.mask.rank());
  attention_part all = emit_attention(queries, keys, values, {.causal = o.causal, .mask = mask}, "ring_attention");
  for (int step = 1; step < devices && !b.failed(); ++step) {
    keys = emit_shift(keys, axis_name, 1, true);
    values = emit_shift(values, axis_name, 1, true);
    if (mask.id >= 0) mask = emit_shift(mask, axis_name, 1, true);
    const symbol position = o.causal ? emit_ring_position(queries, at, axis_name, devices, step) : b.nothing();
    all = merge_attention(all, emit_attention(queries, keys, values, {.mask = mask, .position = position}, "ring_attention"));
  }
  if (b.failed()) return b.nothing();
  return emit_annotate(emit_merge(all.y, at, q.get().dims[at]), sharded_only(q.rank(), at, axis));
}
}  // namespace detail

/// ring_attention<"seq">(q, k, v, options): attention over a sequence T that is sharded over the mesh axis "seq". Each device keeps its
/// queries. Blocks of keys and values move on to the next device, and the results of blocks are merged. The gradient keeps the blocks that
/// a device has seen. Causal: blocks of later keys are skipped, so the last device works longest.
/// Shapes: q [batch..., T, H, D] or [batch..., T, H, R, D]; k and v [batch..., T, H, D] -> the shape of q.
/// Communicates: with n devices along "seq", n - 1 shifts of k, of v, and of the mask if there is one. The gradient shifts the gradients of
/// k and v back n - 1 times. Batch dims and heads may be sharded over other axes.
/// Compile time: ranks and dims; that "seq" has a static extent.
/// Throws: `gshard::error` when the program is bound, if "seq" does not shard T evenly.
/// @see attention, ops/shards/per_shard.hpp
template <fixed_string Axis>
constexpr symbol ring_attention(here q, symbol k, symbol v, ring_attention_options options = {}) {
  const line_of_call kept(*q.owner);
  return detail::emit_ring_attention(q, k, v, options, Axis.view());
}

}}}  // namespace gshard::v0::nn

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The shards of a tensor as a tensor with one more dim, which counts the devices along a mesh axis.

#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/shape.hpp>

#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 {

namespace detail {

/// The dim that counts the devices along an axis.
constexpr int device_dim(builder& b, int axis) { return b.blocks_dim(1u << axis, 1); }
/// A dim divided by the extent of `devices`, and the reverse.
constexpr int part_dim(builder& b, int devices, int whole) {
  const dim d = b.program.dims[std::size_t(whole)];
  return d.what == dim::kind::product && d.first == devices ? int(d.second) : b.ratio_dim(1, whole, devices);
}
constexpr int whole_dim(builder& b, int devices, int part) {
  const dim d = b.program.dims[std::size_t(part)];
  const bool is_part = d.what == dim::kind::ratio && d.second == devices && d.number == 1 && d.divisor == 1;
  return is_part ? int(d.first) : b.product_dim(devices, part);
}

/// A sharding with one dim more or less.
constexpr sharding with_dim(const sharding& s, int at, const short_list& axes) {
  sharding t = s;
  ++t.rank;
  for (int d = at; d < s.rank; ++d) t[d + 1] = s[d];
  t[at] = axes;
  t.open = std::uint8_t((s.open & ((1u << at) - 1u)) | (unsigned(s.open) >> at << (at + 1)));
  return t;
}
constexpr sharding without_dim(const sharding& s, int at) {
  sharding t = s;
  --t.rank;
  for (int d = at; d < t.rank; ++d) t[d] = s[d + 1];
  t[t.rank] = {};
  t.open = std::uint8_t((s.open & ((1u << at) - 1u)) | (unsigned(s.open) >> (at + 1) << at));
  return t;
}

constexpr short_list one_axis(int axis) {
  short_list l;
  l.push_back(axis);
  return l;
}

/// x with dim `from` moved to position `to`.
constexpr symbol emit_dim_moved(symbol x, int from, int to) {
  builder& b = *x.owner;
  if (b.failed() || from == to) return x;
  const short_list dims = counting(x.rank());
  short_list moved = dims;
  moved.erase(from);
  moved.insert(to, from);
  return emit_einsum(b, list_view(&x, 1), list_view(&dims, 1), moved, "per_shard");
}
/// x in another sharding. Its gradient is resharded back.
constexpr symbol emit_brought(symbol x, const sharding& to) {
  const symbol y = emit_annotate(x, to);
  if (!x.owner->failed()) x.owner->program.nodes.back().attr.gradient_as_operand = true;
  return y;
}
/// Moves dim `at`, which counts devices, in front of dim `into` and merges the two.
constexpr symbol emit_joined(symbol x, int at, int into) {
  builder& b = *x.owner;
  const int before = into - (into > at);
  const symbol y = emit_dim_moved(x, at, before);
  if (b.failed()) return b.nothing();
  return emit_merge(y, before, whole_dim(b, y.get().dims[before], y.get().dims[before + 1]));
}

/// The index of an axis in the mesh; reports if there is none.
constexpr int axis_called(builder& b, std::string_view axis, std::string_view verb) {
  if (b.failed()) return -1;
  const int a = b.mesh.find(axis);
  if (a < 0) b.fail(fault::unknown_axis, verb, axis);
  return a;
}

/// Shards along an axis: dim `at` of t counts the devices of the axis and is sharded over this axis alone.
struct shards {
  symbol t;
  int axis = -1, at = -1;

  constexpr builder& owner() const { return *t.owner; }
  constexpr const sharding& layout() const { return t.get().layout; }
};
constexpr shards shards_along(symbol t, std::string_view axis, std::string_view verb) {
  builder& b = *t.owner;
  shards s{b.nothing(), axis_called(b, axis, verb), -1};
  if (b.failed()) return s;
  const int devices = device_dim(b, s.axis);
  for (int d = t.rank(); d-- > 0;) {
    if (t.get().dims[d] != devices) continue;
    if (s.at >= 0) b.fail(fault::device_dim_twice, verb, axis);
    s.at = d;
  }
  if (s.at < 0) b.fail(fault::no_device_dim, verb, axis);
  if (b.failed()) return s;
  sharding here = t.get().layout.without(1u << s.axis);
  here.order = 0;
  here[s.at] = one_axis(s.axis);
  here.open = std::uint8_t(here.open & ~(1u << s.at));
  s.t = here == t.get().layout ? t : emit_annotate(t, here);
  return s;
}
/// The same for a verb that works on the local dim `dim`. `argument`: its name in the call.
constexpr shards shards_along(symbol t, std::string_view axis, std::string_view verb, int dim, std::string_view argument = "dim") {
  const shards s = shards_along(t, axis, verb);
  builder& b = *t.owner;
  if (check_dim(t, dim, verb) && dim == s.at) b.fail_range(verb, argument, dim);
  return s;
}

/// The shards of x along an axis that shards it, counted by dim 0; x itself if the axis does not shard it.
constexpr symbol emit_entered(symbol x, int axis) {
  builder& b = *x.owner;
  if (b.failed()) return b.nothing();
  const sharding layout = x.get().layout;
  const int at = layout.dim_of(axis);
  if (at < 0) return x;
  if (layout[at][0] != axis) {
    b.fail(fault::axis_not_first, "per_shard", b.mesh.name(axis));
    return b.nothing();
  }
  const int devices = device_dim(b, axis);
  const symbol apart = emit_split(x, at, devices, part_dim(b, devices, x.get().dims[at]));
  if (b.failed()) return b.nothing();
  sharding split = with_dim(layout.without(1u << axis), at, one_axis(axis));
  split.partial = split.order = 0;
  const symbol moved = emit_dim_moved(emit_annotate(apart, split), at, 0);
  return at == 0 || b.failed() ? moved : emit_annotate(moved, with_dim(without_dim(split, at), 0, one_axis(axis)));
}
/// The reverse. The result has the sharding `layout`.
constexpr symbol emit_left(symbol y, int axis, const sharding& layout) {
  builder& b = *y.owner;
  if (b.failed()) return b.nothing();
  const int into = layout.dim_of(axis);
  const bool differs = y.get().dims.contains(device_dim(b, axis));
  if (y.rank() - differs != layout.rank) b.fail(fault::rank_mismatch, "per_shard", {}, layout.rank, y.rank() - differs);
  if (differs && into < 0) b.fail(fault::device_dim_left, "per_shard", b.mesh.name(axis));
  if (into >= 0 && layout[into][0] != axis) b.fail(fault::axis_not_first, "per_shard", b.mesh.name(axis));
  if (layout.partial) b.fail(fault::incomplete_output, "per_shard");
  if (b.failed()) return b.nothing();
  if (into < 0) return emit_annotate(y, layout);
  const shards s = shards_along(y, b.mesh.name(axis), "per_shard");
  if (b.failed()) return b.nothing();
  return emit_annotate(emit_joined(s.t, s.at, into + (into >= s.at)), layout);
}

}  // namespace detail

}}  // namespace gshard::v0

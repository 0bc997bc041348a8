// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Manual regions (JAX's shard_map): verbs on the shards of each device, with explicit collectives.
//
// They are the paper's auto_to_manual and its reverse (arXiv 2006.16668 section 3.2). The shards of a tensor are a tensor with one more
// dim, which counts the devices. [B, M] with B sharded over "x" is [X, B / X, M], with one index of X on each device. Therefore every verb
// works on shards, has its gradient and is part of the plan.

#include <gshard/base/fixed_string.hpp>
#include <gshard/ir/reduction.hpp>
#include <gshard/ir/spec.hpp>
#include <gshard/trace/builder.hpp>
#include <gshard/trace/einsum.hpp>
#include <gshard/trace/reduce.hpp>
#include <gshard/trace/shape.hpp>
#include <gshard/trace/window.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>

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

/// The reduction of all shards, the same on all devices, in the sharding `layout`.
constexpr symbol emit_reduced(const shards& s, reduction what, const sharding& layout) {
  builder& b = s.owner();
  if (b.failed()) return b.nothing();
  const short_list all = counting(s.t.rank());
  short_list kept = all;
  kept.erase(s.at);
  const symbol y = what == reduction::sum ? emit_sum(s.t, kept) : emit_reduce(s.t, what, all, kept, "all_reduce");
  return b.failed() ? b.nothing() : emit_annotate(y, layout);
}
constexpr symbol emit_all_reduce(symbol t, std::string_view axis, reduction what) {
  const shards s = shards_along(t, axis, "all_reduce");
  return s.owner().failed() ? s.owner().nothing() : emit_reduced(s, what, without_dim(s.layout(), s.at));
}
constexpr symbol emit_reduce_scatter(symbol t, std::string_view axis, int dim) {
  const shards s = shards_along(t, axis, "reduce_scatter", dim);
  builder& b = s.owner();
  if (b.failed()) return b.nothing();
  sharding scattered = without_dim(s.layout(), s.at);
  const int at = dim - (dim > s.at);
  scattered[at].insert(0, s.axis);
  return emit_dim_moved(emit_entered(emit_reduced(s, reduction::sum, scattered), s.axis), 0, s.at);
}
constexpr symbol emit_all_gather(symbol t, std::string_view axis, int dim) {
  const shards s = shards_along(t, axis, "all_gather", dim);
  builder& b = s.owner();
  if (b.failed()) return b.nothing();
  return emit_joined(emit_brought(s.t, s.layout().without(1u << s.axis)), s.at, dim);
}
constexpr symbol emit_all_to_all(symbol t, std::string_view axis, int split, int concat) {
  const shards s = shards_along(t, axis, "all_to_all", split, "split");
  builder& b = s.owner();
  if (!b.failed() && check_dim(t, concat, "all_to_all") && concat == s.at) b.fail_range("all_to_all", "concat", concat);
  if (b.failed()) return b.nothing();
  const int devices = device_dim(b, s.axis), from = s.at + (s.at > split), into = concat + (concat >= split);
  const symbol apart = emit_split(s.t, split, devices, part_dim(b, devices, t.get().dims[split]));
  if (b.failed()) return b.nothing();
  const sharding before = with_dim(s.layout(), split, {});
  sharding after = before.without(1u << s.axis);
  after[split] = one_axis(s.axis);
  const symbol moved = emit_joined(emit_brought(emit_annotate(apart, before), after), from, into);
  return emit_dim_moved(moved, split - (from < split), s.at);
}
constexpr symbol emit_shift(symbol t, std::string_view axis, int by, bool wrap) {
  const shards s = shards_along(t, axis, "shift");
  builder& b = s.owner();
  if (b.failed()) return b.nothing();
  const int devices = s.t.get().dims[s.at];
  b.place.is_explicit = true;
  const symbol y = wrap ? emit_moved(op::roll, s.t, s.at, roll_window(devices, by))
                        : emit_moved(op::pad, s.t, s.at, pad_window(b, devices, by, -by, 0));
  b.place.is_explicit = false;
  return y;
}
constexpr symbol emit_permute(symbol t, std::string_view axis, list_view<device_pair> pairs) {
  const shards s = shards_along(t, axis, "collective_permute");
  builder& b = s.owner();
  if (b.failed()) return b.nothing();
  const int devices = b.mesh.static_extent(s.axis);
  const auto is_device = [&](int i) { return i >= 0 && (devices == dynamic || i < devices); };
  for (const device_pair& p : pairs) {
    if (!is_device(p.source) || !is_device(p.target)) {
      tensor_name verb("collective_permute over ");
      verb.append(axis);
      b.fail_range(verb.view(), "source, target", p.source, p.target);
    }
    for (const device_pair* q = pairs.begin(); q != &p; ++q)
      if (p.source == q->source || p.target == q->target) b.fail(fault::not_a_permutation, "collective_permute", axis);
  }
  if (b.failed()) return b.nothing();
  window w;
  w.over = std::int16_t(s.t.get().dims[s.at]);
  w.pairs = {pairs.data(), int(pairs.size())};
  b.place.is_explicit = true;
  const symbol y = emit_moved(op::permute, s.t, s.at, w);
  b.place.is_explicit = false;
  return y;
}
/// The first or the last `count` elements along a dim.
constexpr symbol emit_border(symbol t, int dim, int count, bool last) {
  builder& b = *t.owner;
  if (b.failed()) return b.nothing();
  window w;
  w.over = std::int16_t(b.fixed_dim(count));
  if (last) {
    w.low_dim = std::int16_t(t.get().dims[dim]);
    w.plus_low = 1;
    w.low = -count;
  }
  return emit_moved(op::strided_slice, t, dim, w, 0, true);
}
constexpr symbol emit_halo(symbol t, std::string_view axis, int low, int high, int dim, bool wrap) {
  const shards s = shards_along(t, axis, "halo", dim);
  builder& b = s.owner();
  if (b.failed()) return b.nothing();
  std::array<symbol, 3> parts{};
  std::size_t count = 0;
  if (low > 0) parts[count++] = emit_shift(emit_border(s.t, dim, low, true), axis, 1, wrap);
  parts[count++] = s.t;
  if (high > 0) parts[count++] = emit_shift(emit_border(s.t, dim, high, false), axis, -1, wrap);
  return b.failed() || count == 1 ? s.t : concat(list_view(parts.data(), count), dim);
}
constexpr symbol emit_device_index(builder& b, std::string_view axis) {
  const int a = axis_called(b, axis, "device_index");
  if (b.failed()) return b.nothing();
  sharding_rule rule;
  rule.out[0] = counting(1);
  dim_list dims;
  dims.push_back(device_dim(b, a));
  return {&b, b.add_node(op::iota, {}, rule, {}, {{dims, dtype::i32}})};
}

}  // namespace detail

/// per_shard<"x", P<"x", none>>(body, x, w, ...): a region in which `body` works on the shards along mesh axis "x"; the shard_map of JAX.
///
/// If an operand [B, M] is annotated as sharded over "x", body gets its shards [X, B / X, M]: dim 0 counts the devices. Other operands are
/// passed unchanged. body(symbol...) uses any verbs; each device computes on its own shards. all_reduce<"x">, all_gather<"x">,
/// reduce_scatter<"x">, all_to_all<"x">, shift<"x"> and halo<"x"> communicate. At the end of the region, X of a result is merged with the
/// dim that the spec shards over "x". A result without X is the same on all devices, and its spec does not name "x". A body with several
/// results returns a std::tuple, and the region has as many specs. Regions over several axes are nested. If both axes shard one dim, the
/// region over the first axis of this dim is the outer one.
/// Shapes: as above.
/// Communicates: as the verbs of body. Entering and leaving adds reshards along other axes only. Gradients are those of the verbs.
/// Compile time: ranks and axes; that a result's spec names "x" if and only if the result has X.
/// Throws: `gshard::error` when the program is bound, if "x" does not shard a dim evenly.
/// @see call_on_shards for a C++ function of shards
template <fixed_string Axis, class... Specs, class Body, class... Symbols>
  requires(sizeof...(Specs) > 0 && (std::same_as<Symbols, symbol> && ...))
constexpr auto per_shard(const Body& body, here first, Symbols... rest) {
  builder& b = *first.owner;
  const code_place place = b.place;
  const int axis = detail::axis_called(b, Axis.view(), "per_shard");
  const std::array<symbol, 1 + sizeof...(rest)> entered{detail::emit_entered(first, axis), detail::emit_entered(rest, axis)...};
  const auto leave = [&]<class Spec>(symbol y, Spec) {
    const sharding layout = b.failed() ? sharding{} : b.resolve(Spec::named, "per_shard");
    if (!b.failed()) b.place = place;
    return b.failed() ? b.nothing() : detail::emit_left(y, axis, layout);
  };
  if constexpr (sizeof...(Specs) == 1) {
    return b.failed() ? b.nothing() : leave(std::apply(body, entered), Specs{}...);
  } else {
    std::array<symbol, sizeof...(Specs)> results{};
    results.fill(b.nothing());
    const auto listed = [](const auto&... y) { return std::array<symbol, sizeof...(Specs)>{y...}; };
    if (!b.failed()) results = std::apply(listed, std::apply(body, entered));
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::tuple{leave(results[I], Specs{})...};
    }(std::make_index_sequence<sizeof...(Specs)>{});
  }
}

/// all_reduce<"x">(t): the sum of the shards of all devices along "x", or another `reduction`.
/// Shapes: [X, ...] -> [...].
/// Communicates: one all_reduce of a shard.
/// Compile time: that t has the dim that counts the devices.
/// Throws: nothing.
/// @see reduce_scatter
template <fixed_string Axis>
constexpr symbol all_reduce(here t, reduction what = reduction::sum) {
  return detail::emit_all_reduce(t, Axis.view(), what);
}
/// all_gather<"x">(t, dim): the shards of all devices along "x", concatenated along `dim`. The number `dim` includes X.
/// Shapes: [X, ..., b, ...] -> [..., X * b, ...].
/// Communicates: one all_gather; before it a reshard, if other axes shard `dim`. Its gradient is a reduce_scatter.
/// Compile time: that t has X and the dim.
/// Throws: nothing.
/// @see reduce_scatter
template <fixed_string Axis>
constexpr symbol all_gather(here t, int dim) {
  return detail::emit_all_gather(t, Axis.view(), dim);
}
/// reduce_scatter<"x">(t, dim): the sum over the devices along "x". Each device gets its block along `dim`.
/// Shapes: [X, ..., B, ...] -> [X, ..., B / X, ...].
/// Communicates: one reduce_scatter, or an all_to_all if another axis shards `dim`. Its gradient is an all_gather.
/// Compile time: that t has X and the dim.
/// Throws: `gshard::error` when the program is bound, if X does not divide B.
/// @see all_reduce, all_gather
template <fixed_string Axis>
constexpr symbol reduce_scatter(here t, int dim) {
  return detail::emit_reduce_scatter(t, Axis.view(), dim);
}
/// all_to_all<"x">(t, split, concat): device i gets block i of dim `split` from all devices, concatenated along dim `concat`, which may be
/// `split`.
/// Shapes: [X, ..., S, ..., c, ...] -> [X, ..., S / X, ..., X * c, ...].
/// Communicates: one all_to_all; before it a reshard, if other axes shard these dims. The same in its gradient.
/// Compile time: that t has X and the dims.
/// Throws: `gshard::error` when the program is bound, if X does not divide S.
/// @see all_gather
template <fixed_string Axis>
constexpr symbol all_to_all(here t, int split, int concat) {
  return detail::emit_all_to_all(t, Axis.view(), split, concat);
}

/// The elements beyond the first and the last device along an axis.
enum class border : std::uint8_t { zeros, wrap };

/// shift<"x">(t, by): every device along "x" gets the shard of the device `by` positions before it. Beyond the ends: the other end, or
/// zeros with border::zeros.
/// Shapes: [X, ...] -> the same.
/// Communicates: one collective_permute of a shard.
/// Compile time: that t has X.
/// Throws: nothing.
/// @see halo
template <fixed_string Axis>
constexpr symbol shift(here t, int by, border beyond = border::wrap) {
  return detail::emit_shift(t, Axis.view(), by, beyond == border::wrap);
}
/// Pairs of devices along a mesh axis, each a source and a target: `device_pairs({{0, 1}, {1, 2}})`, or made by a function.
template <std::size_t N>
struct device_pairs {
  device_pair pairs[N]{};

  constexpr device_pairs() = default;
  constexpr device_pairs(const device_pair (&list)[N]) {
    for (std::size_t i = 0; i < N; ++i) pairs[i] = list[i];
  }
  constexpr device_pair& operator[](std::size_t i) { return pairs[i]; }
};
namespace detail {
template <auto Pairs>
inline constexpr auto stored_pairs = Pairs;
}  // namespace detail

/// collective_permute<"x", device_pairs({{0, 1}, {1, 2}})>(t): the device `target` of each pair along "x" gets the shard of the device
/// `source`. Devices that are no target get zeros. JAX calls it lax.ppermute.
/// Shapes: [X, ...] -> the same.
/// Communicates: one collective_permute of a shard. The same in its gradient, with the pairs reversed.
/// Compile time: that t has X; that no two pairs have one source or one target; that X has the devices, if its extent is static.
/// Throws: `gshard::error` when the program is bound, if X lacks a device.
/// @see shift
template <fixed_string Axis, device_pairs Pairs>
constexpr symbol collective_permute(here t) {
  constexpr auto& stored = detail::stored_pairs<Pairs>;
  return detail::emit_permute(t, Axis.view(), {stored.pairs, std::size(stored.pairs)});
}
/// halo<"x", low, high>(t, dim): each shard, extended along `dim` by the last `low` elements of the shard before it and the first `high` of
/// the next. Beyond the ends: zeros, or the other end with border::wrap.
/// Shapes: [X, ..., b, ...] -> [X, ..., low + b + high, ...].
/// Communicates: one collective_permute per border.
/// Compile time: that low and high are not negative; that t has X and the dim.
/// Throws: `gshard::error` when the program is bound, if a border is wider than a shard.
/// @see shift
template <fixed_string Axis, int Low, int High>
constexpr symbol halo(here t, int dim, border beyond = border::zeros) {
  static_assert(Low >= 0 && High >= 0, "gshard: the borders of a halo have no negative widths");
  return detail::emit_halo(t, Axis.view(), Low, High, dim, beyond == border::wrap);
}
/// device_index<"x">(t): the number of each device along "x". t only names the program.
/// Shapes: any -> [X], int32.
/// Communicates: nothing.
/// Compile time: that the mesh has the axis.
/// Throws: nothing.
/// @see iota
template <fixed_string Axis>
constexpr symbol device_index(here t) {
  return detail::emit_device_index(*t.owner, Axis.view());
}

}}  // namespace gshard::v0

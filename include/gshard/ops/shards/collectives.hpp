// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The collectives of manual regions: all_reduce, all_gather, reduce_scatter, all_to_all, shift, collective_permute and halo; device_index.

#include <gshard/core/base/fixed_string.hpp>
#include <gshard/core/ir/reduction.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/ops/reduce/reduce.hpp>
#include <gshard/ops/shards/shards.hpp>
#include <gshard/ops/window/concat.hpp>
#include <gshard/ops/window/moved.hpp>
#include <gshard/ops/window/pad.hpp>
#include <gshard/ops/window/roll.hpp>
#include <gshard/ops/window/slice.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 {

namespace detail {

/// The reduction of all shards, the same on all devices, in the sharding `layout`.
template <class Used>
constexpr symbol emit_reduced(const shards& s, reduction what, const sharding& layout) {
  builder& b = s.owner();
  if (b.failed()) return b.nothing();
  const short_list all = counting(s.t.rank());
  short_list kept = all;
  kept.erase(s.at);
  const symbol y = what == reduction::sum ? emit_sum(s.t, kept) : emit_reduce<Used>(s.t, what, all, kept, "all_reduce");
  return b.failed() ? b.nothing() : emit_annotate(y, layout);
}
template <class Used>
constexpr symbol emit_all_reduce(symbol t, std::string_view axis, reduction what) {
  const shards s = shards_along(t, axis, "all_reduce");
  return s.owner().failed() ? s.owner().nothing() : emit_reduced<Used>(s, what, without_dim(s.layout(), s.at));
}
template <class Used>
constexpr symbol emit_reduce_scatter(symbol t, std::string_view axis, int dim) {
  const shards s = shards_along(t, axis, "reduce_scatter", dim);
  builder& b = s.owner();
  if (b.failed()) return b.nothing();
  sharding scattered = without_dim(s.layout(), s.at);
  const int at = dim - (dim > s.at);
  scattered[at].insert(0, s.axis);
  return emit_dim_moved(emit_entered(emit_reduced<Used>(s, reduction::sum, scattered), s.axis), 0, s.at);
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
  const symbol y = wrap ? emit_moved(roll_rules, s.t, s.at, roll_window(devices, by))
                        : emit_moved(pad_rules, s.t, s.at, pad_window(b, devices, by, -by, 0));
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
  const symbol y = emit_moved(permute_rules, s.t, s.at, w);
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
  return emit_moved(strided_slice_rules, t, dim, w, 0, true);
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

/// all_reduce<"x">(t): the sum of the shards of all devices along "x", or another `reduction`.
/// Shapes: [X, ...] -> [...].
/// Communicates: one all_reduce of a shard.
/// Compile time: that t has the dim that counts the devices.
/// Throws: nothing.
/// @see reduce_scatter
template <fixed_string Axis>
constexpr symbol all_reduce(here t, reduction what = reduction::sum) {
  return detail::emit_all_reduce<void>(t, Axis.view(), what);
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
  return detail::emit_reduce_scatter<void>(t, Axis.view(), dim);
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

template <fixed_string Axis = "", class... Given>
  requires(detail::left_out<Axis> || !detail::call<1, symbol, reduction>::fits<Given...>)
constexpr auto all_reduce(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: all_reduce<\"x\">(t, reduction::sum) takes a mesh axis, a tensor of a program and a reduction");
  return detail::refused(given...);
}
template <fixed_string Axis = "", class... Given>
  requires(detail::left_out<Axis> || !detail::call<2, symbol, int>::fits<Given...>)
constexpr auto all_gather(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: all_gather<\"x\">(t, dim) takes a mesh axis, a tensor of a program and a dim");
  return detail::refused(given...);
}
template <fixed_string Axis = "", class... Given>
  requires(detail::left_out<Axis> || !detail::call<2, symbol, int>::fits<Given...>)
constexpr auto reduce_scatter(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: reduce_scatter<\"x\">(t, dim) takes a mesh axis, a tensor of a program and a dim");
  return detail::refused(given...);
}
template <fixed_string Axis = "", class... Given>  // all_to_all<0, 1>(t) takes tensors outside of programs
  requires(Axis.view() != "<number>" && (detail::left_out<Axis> || !detail::call<3, symbol, int, int>::fits<Given...>))
constexpr auto all_to_all(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: all_to_all<\"x\">(t, split, concat) takes a mesh axis, a tensor of a program and two dims");
  return detail::refused(given...);
}
template <fixed_string Axis = "", class... Given>
  requires(detail::left_out<Axis> || !detail::call<2, symbol, int, border>::fits<Given...>)
constexpr auto shift(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: shift<\"x\">(t, by, border::wrap) takes a mesh axis, a tensor of a program, an integer and a border");
  return detail::refused(given...);
}
template <fixed_string Axis = "", class... Given>
constexpr auto collective_permute(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: collective_permute<\"x\", device_pairs({{0, 1}, {1, 2}})>(t) takes a mesh axis, pairs and a tensor of a program");
  return detail::refused(given...);
}
template <fixed_string Axis, device_pairs Pairs, class... Given>
  requires(!detail::tensors<1>::fits<Given...>)
constexpr auto collective_permute(const Given&... given) {
  return collective_permute<Axis>(given...);
}
template <fixed_string Axis = "", int Low = 0, int High = 0, class... Given>
  requires(detail::left_out<Axis> || !detail::call<2, symbol, int, border>::fits<Given...>)
constexpr auto halo(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: halo<\"x\", 1, 1>(t, dim, border::zeros) takes an axis, two widths, a tensor of a program, a dim and a border");
  return detail::refused(given...);
}
template <fixed_string Axis = "", class... Given>
  requires(detail::left_out<Axis> || !detail::tensors<1>::fits<Given...>)
constexpr auto device_index(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: device_index<\"x\">(t) takes a mesh axis and one tensor of a program");
  return detail::refused(given...);
}

}}  // namespace gshard::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Finds the cheapest sequence of collectives from one sharding to another.

#include <gshard/core/ir/graph.hpp>
#include <gshard/core/reshard/cost.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace gshard { inline namespace v0 {

/// One step of a reshard: its kind, the axes along which data move, and the sharding that it produces.
struct move {
  op_ref kind{};
  std::uint8_t axes = 0;  // mask
  sharding to;
};

/// The moves of a reshard, and the bytes that one device receives for them.
struct move_list {
  static constexpr std::size_t most = 5;
  std::array<move, most> moves{};
  std::size_t count = 0;
  std::int64_t bytes = 0;
  std::int64_t starts = 0;  // moves that communicate

  constexpr void add(op_ref kind, std::uint32_t axes, const sharding& to) {
    move& m = moves.data()[count++];
    m.kind = kind;
    m.axes = std::uint8_t(axes);
    m.to = to;
    starts += traits(kind).collective;
  }
  /// Bytes, plus the cost of all starts.
  constexpr std::int64_t cost(const extents& e) const { return bytes + starts * e.start_bytes; }
  constexpr const move* begin() const { return moves.data(); }
  constexpr const move* end() const { return moves.data() + count; }
};

/// The axes along which data move in a reshard.
constexpr std::uint32_t moving_axes(const sharding& from, const sharding& to) {
  std::uint32_t mask = 0;
  for (int d = 0; d < from.rank; ++d) {
    const short_list &before = from.axes[d], &after = to.axes[d];
    if (before.same(after)) continue;
    const std::uint32_t kept = before.prefix(before.common_prefix(after)).mask();
    mask |= (before.mask() ^ kept) | (after.mask() ^ kept);
  }
  return mask;
}

/// True if every device gets its new shard from one other device: each dim keeps its number of blocks. This holds for any extents of
/// run-time axes.
constexpr bool is_permutation(const sharding& from, const sharding& to, const extents& e) {
  for (int d = 0; d < from.rank; ++d) {
    if (from.axes[d].same(to.axes[d])) continue;
    const std::uint32_t before = from[d].mask(), after = to[d].mask(), changed = before ^ after;
    if (changed == 0) continue;
    if ((changed & e.known_axes) != changed || e.devices(before) != e.devices(after)) return false;
  }
  return true;
}

namespace detail {

/// Axes of more than one device over which a tensor is replicated.
constexpr std::uint32_t idle_axes(const sharding& s, const extents& e) {
  const int* const extent = e.axes.data();
  std::uint32_t many = 0;
  for (int a = 0; a < max_axes; ++a)
    if (extent[a] > 1) many |= 1u << a;
  return many & ~(s.used() | s.partial);
}

/// Plans a reshard as a sequence of these moves. Each is left out if it has nothing to do.
///
///     slice           shard over axes that hold replicas: nothing is sent
///     reduce_scatter  complete partial sums; each device gets its own block
///     all_reduce      complete partial sums on all devices; then slice the replicas
///     one exchange    each device receives the missing part of its new shard: all_gather if it keeps all it has, collective_permute if it
///                     gets the complete shard of one other device, otherwise all_to_all
///
/// Sums are therefore completed while data are small. The exchange sends no element that its receiver already has. Between complete
/// shardings no plan can send less.
class way_planner {
 public:
  constexpr way_planner(const value& v, const sharding& from, const sharding& to, const extents& e)
      : v_(v), to_(to), to_used_(to.used()), e_(e), now_(from) {
    now_.open = to_.open = 0;
  }

  /// The partial sums that are scattered; the others are all-reduced. `over_goal_axes`: sums over axes that shard the goal, to save bytes.
  /// `all`: every sum, gathered again at the end. This pays if other data also move. `none`: this pays if starts dominate the cost.
  enum class scatter : std::uint8_t { none, over_goal_axes, all };

  /// use_idle: the sums are sharded over idle axes, which hold replicas.
  constexpr const move_list& run(scatter which, bool use_idle) {
    slice(use_idle);
    if (now_.partial & ~to_.partial) {
      complete(which);
      slice(false);
    }
    exchange();
    return list_;
  }

 private:
  const value& v_;
  sharding to_;
  std::uint32_t to_used_;
  const extents& e_;
  sharding now_;
  move_list list_;

  constexpr std::uint32_t axes_in_use() const { return now_.used() | now_.partial; }

  constexpr void add_step(op_ref kind, std::uint32_t axes, const sharding& next) {
    if (traits(kind).collective) list_.bytes += bytes_received(kind, axes, v_, now_, next, e_);
    list_.add(kind, axes, next);
    now_ = next;
  }

  /// Extends the axes of each dim of s towards the goal, by axes of this mask.
  constexpr sharding extended(sharding s, std::uint32_t by) const {
    if (by == 0) return s;
    for (int d = 0; d < s.rank; ++d) {
      const short_list& goal = to_.axes[d];
      if (goal.count <= s.axes[d].count || !s.axes[d].is_prefix_of(goal)) continue;
      for (int i = s.axes[d].count; i < goal.count && ((by >> goal[i]) & 1u); ++i) s.axes[d].push_back(goal[i]);
    }
    return s;
  }
  constexpr void slice(bool use_idle) {
    const std::uint32_t missing = to_used_ & ~axes_in_use();
    if (missing == 0 && !use_idle) return;
    sharding next = extended(now_, missing);
    if (use_idle) append(next, idle_axes(now_, e_) & ~next.used());
    if (const std::uint32_t axes = next.used() & ~now_.used()) add_step(op::slice, axes, next);
  }

  /// Shards dims over axes that do not shard them in the goal. It prefers dims that are long enough. Among these it prefers dims that
  /// already have all axes of the goal, because their shards contain the final ones; then the longest.
  constexpr void append(sharding& s, std::uint32_t axes) const {
    if (axes == 0 || s.rank == 0) return;
    for (int a = 0; axes >> a != 0; ++a) {
      if (!((axes >> a) & 1u)) continue;
      int best = 0;
      std::int64_t most = -1;
      for (int d = 0; d < s.rank; ++d) {
        const short_list &have = s.axes[d], &goal = to_.axes[d];
        const std::int64_t extent = e_.dim(v_.dims[d]) / (have.count > 0 ? e_.devices(have.mask()) : 1);
        const bool all = goal.count == 0 || goal.is_prefix_of(have);
        const std::int64_t merit = extent < e_.axis(a) ? extent : (all ? 2 : 1) * longest + extent;
        if (merit <= most) continue;
        best = d;
        most = merit;
      }
      s[best].push_back(a);
    }
  }
  static constexpr std::int64_t longest = std::int64_t(1) << 48;

  constexpr void complete(scatter which) {
    const std::uint32_t sums = now_.partial & ~to_.partial;
    std::uint32_t scattered = which == scatter::all ? sums : which == scatter::over_goal_axes ? sums & to_used_ : 0;
    if (now_.rank == 0) scattered = 0;
    if (scattered) {
      sharding next = extended(now_, scattered | (to_used_ & ~axes_in_use()));
      append(next, scattered & ~next.used());
      next.partial = std::uint8_t(next.partial & ~scattered);
      add_step(op::reduce_scatter, scattered, next);
    }
    if (const std::uint32_t rest = sums & ~scattered) {
      sharding next = now_;
      next.partial = std::uint8_t(next.partial & ~rest);
      add_step(op::all_reduce, rest, next);
    }
  }

  /// One exchange from the current sharding to the goal, which have the same partial sums.
  constexpr void exchange() {
    if (now_.same_layout(to_)) return;
    bool coarser = true;
    for (int d = 0; d < now_.rank; ++d) coarser = coarser && (to_.axes[d].count == 0 || to_.axes[d].is_prefix_of(now_.axes[d]));
    const op_ref kind = coarser ? op::all_gather : is_permutation(now_, to_, e_) ? op::collective_permute : op::all_to_all;
    add_step(kind, moving_axes(now_, to_), to_);
  }
};

}  // namespace detail

namespace detail {

constexpr move_list cheapest_way(const value& v, const sharding& from, const sharding& to, const extents& e) {
  if (from.same_layout(to)) return {};
  if (const std::uint32_t axes = to.used(); axes && !to.partial && !from.partial && !from.used()) {  // the most frequent case: one slice
    move_list list;
    list.add(op::slice, axes, to);
    list.moves[0].to.open = 0;
    return list;
  }
  move_list best = way_planner(v, from, to, e).run(way_planner::scatter::over_goal_axes, false);
  // Every sequence starts at least one collective. If the bytes cost less than one start, no further start pays.
  if (!(from.partial & ~to.partial) || from.rank == 0 || best.cost(e) <= 2 * e.start_bytes) return best;
  const std::uint32_t sums = from.partial & ~to.partial, over_goal = sums & to.used();
  const bool some_idle = detail::idle_axes(from, e) != 0;
  for (const auto which : {way_planner::scatter::none, way_planner::scatter::over_goal_axes, way_planner::scatter::all})
    for (const bool use_idle : {false, true}) {
      const bool is_best = !use_idle && which == (over_goal ? way_planner::scatter::over_goal_axes : way_planner::scatter::none);
      const bool as_before = (which == way_planner::scatter::over_goal_axes && over_goal == 0) ||
                             (which == way_planner::scatter::all && over_goal == sums);
      if (is_best || as_before || (use_idle && !some_idle)) continue;
      way_planner way(v, from, to, e);
      const move_list& other = way.run(which, use_idle);
      if (other.cost(e) < best.cost(e) || (other.cost(e) == best.cost(e) && other.count < best.count)) best = other;
    }
  return best;
}

/// The axes that are known to have one device.
constexpr std::uint32_t single_axes(const extents& e) {
  std::uint32_t mask = 0;
  for (int a = 0; a < max_axes; ++a)
    if (((e.known_axes >> a) & 1u) && e.axis(a) == 1) mask |= 1u << a;
  return mask;
}

}  // namespace detail

constexpr move_list plan_reshard(const value& v, const sharding& from, const sharding& to, const extents& e);

namespace detail {
/// A reshard to or from a device order. Partial sums are completed first. One exchange then brings every device the missing part of its new
/// shard. The bytes of that exchange depend on the table of orders, and are not included.
// A template, so that only programs with device orders pay for it.
template <class Extents>
constexpr move_list way_between_orders(const value& v, const sharding& from, const sharding& to, const Extents& e) {
  move_list way;
  sharding now = from;
  if (from.partial) {
    sharding complete = to;
    complete.order = 0;
    for (const move& m : plan_reshard(v, from, complete, e)) {
      if (!now.partial) break;
      if (traits(m.kind).collective) way.bytes += bytes_received(m.kind, m.axes, v, now, m.to, e);
      way.add(m.kind, m.axes, m.to);
      now = m.to;
    }
  }
  bool finer = now.order == to.order || !now.used();
  for (int d = 0; d < to.rank; ++d) finer = finer && now[d].is_prefix_of(to[d]);
  std::uint32_t several = 0;
  for (int a = 0; a < max_axes; ++a)
    if (e.axis(a) > 1) several |= 1u << a;
  if (finer) {
    way.add(op::slice, to.used() & ~now.used(), to);
  } else {
    const bool gathers = !to.used() && (several & ~now.used()) == 0;
    way.add(gathers ? op::all_gather : is_permutation(now, to, e) ? op::collective_permute : op::all_to_all, e.known_axes, to);
  }
  way.moves[way.count - 1].to.open = 0;
  return way;
}
}  // namespace detail

/// The cheapest reshard of a tensor, by bytes and starts. Empty if the sharding stays the same. `to` may not have a partial sum that `from`
/// lacks. Nothing is sent if the shardings differ only in axes of one device. A change of the device order alone is one permutation.
/// @see detail::way_planner for the moves
constexpr move_list plan_reshard(const value& v, const sharding& from, const sharding& to, const extents& e) {
  if (from.same_layout(to)) return {};
  if (from.order | to.order) return detail::way_between_orders(v, from, to, e);
  const std::uint32_t single = detail::single_axes(e);
  if (single == 0) return detail::cheapest_way(v, from, to, e);
  move_list way = detail::cheapest_way(v, from.without(single), to.without(single), e);
  if (way.count == 0) way.moves[way.count++] = {op::slice, std::uint8_t(single), to};
  else way.moves[way.count - 1].to = to;
  return way;
}

}}  // namespace gshard::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/ir/graph.hpp>
#include <gshard/pass/cost.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 {

/// One step from a layout to another. slice, all_gather: `axis` at the end of dim `to` / `from`; all_to_all: `axis` from the
/// end of dim `from` to the end of dim `to`; reduce_scatter: pending `axis` to the end of dim `to`; all_reduce: pending `axes`.
struct move {
  op kind{};
  int axis = -1;
  int from = -1, to = -1;
  std::uint8_t axes = 0;  // mask; for one axis its bit
};

/// What a move makes of a layout.
constexpr sharding after(const sharding& before, const move& m) {
  sharding s = before;
  s.open = 0;
  switch (m.kind) {
    case op::slice: s[m.to].push_back(m.axis); break;
    case op::all_gather: s[m.from].pop_back(); break;
    case op::all_to_all:
      s[m.from].pop_back();
      s[m.to].push_back(m.axis);
      break;
    case op::reduce_scatter: s[m.to].push_back(m.axis); [[fallthrough]];
    case op::all_reduce: s.partial = std::uint8_t(s.partial & ~m.axes); break;
    default: break;
  }
  return s;
}

struct move_list {
  static constexpr std::size_t most = 24;
  std::array<move, most> moves{};
  std::size_t count = 0;

  constexpr void push_back(const move& m) { moves[count++] = m; }
  constexpr const move* begin() const { return moves.data(); }
  constexpr const move* end() const { return moves.data() + count; }
};

namespace detail {

constexpr move axis_move(op kind, int axis, int from, int to) { return {kind, axis, from, to, std::uint8_t(1u << axis)}; }

/// The next axis that dim d still needs, if what it has is a prefix of what it should have; else -1.
constexpr int next_axis(const sharding& now, const sharding& goal, int d) {
  if (now[d].size() < goal[d].size() && now[d].is_prefix_of(goal[d])) return goal[d][now[d].size()];
  return -1;
}

/// An all_to_all that brings an axis to its place; `axis` is -1 if there is none.
constexpr move find_exchange(const sharding& now, const sharding& goal) {
  for (int d = 0; d < now.rank; ++d) {
    const int a = next_axis(now, goal, d), source = a < 0 ? -1 : now.dim_of(a);
    if (source >= 0 && now[source].back() == a) return axis_move(op::all_to_all, a, source, d);
  }
  return {};
}

/// The gather that helps most: of an axis that the goal lacks, which has to go anyway, else of one that stood in another's way.
constexpr move find_gather(const sharding& now, const sharding& goal) {
  move best;
  int merit = -1;
  for (int d = 0; d < now.rank; ++d) {
    if (now[d].is_prefix_of(goal[d])) continue;
    const move m = axis_move(op::all_gather, now[d].back(), d, -1);
    const int merits = goal.dim_of(m.axis) < 0 ? 2 : find_exchange(after(now, m), goal).axis >= 0 ? 1 : 0;
    if (merits > merit) {
      best = m;
      merit = merits;
    }
  }
  return best;
}

/// The best single move towards `goal`: first what costs nothing (slice), then what shrinks the data (reduce_scatter), then
/// all_to_all, then sums, and a gather only when nothing else helps.
constexpr move next_move(const sharding& now, const sharding& goal) {
  const std::uint8_t to_sum = std::uint8_t(now.partial & ~goal.partial);
  const std::uint32_t used = now.used() | now.partial;
  for (int d = 0; d < now.rank; ++d)
    if (const int a = next_axis(now, goal, d); a >= 0 && !((used >> a) & 1u)) return axis_move(op::slice, a, -1, d);
  for (int d = 0; d < now.rank; ++d)
    if (const int a = next_axis(now, goal, d); a >= 0 && ((to_sum >> a) & 1u)) return axis_move(op::reduce_scatter, a, -1, d);
  if (const move m = find_exchange(now, goal); m.axis >= 0) return m;
  if (to_sum) return {op::all_reduce, -1, -1, -1, to_sum};
  return find_gather(now, goal);
}

}  // namespace detail

/// The moves from one layout of a tensor to another; empty when the data already lie so. `to` may not have pending sums that
/// `from` lacks.
constexpr move_list plan_reshard(const sharding& from, const sharding& to) {
  move_list list;
  sharding now = from;
  while (!now.same_layout(to) && list.count < move_list::most) {
    const move m = detail::next_move(now, to);
    list.push_back(m);
    now = after(now, m);
  }
  return list;
}

/// Bytes that a device sends for these moves of a tensor.
constexpr std::int64_t bytes_sent(const move_list& moves, const value& v, const sharding& from, const extents& e) {
  std::int64_t total = 0;
  sharding now = from;
  for (const move& m : moves) {
    if (traits(m.kind).collective)
      total += bytes_sent(m.kind, shard_elements(v.dims, now, e) * size_of(v.type), e.devices(m.axes));
    now = after(now, m);
  }
  return total;
}

}}  // namespace gshard::v0

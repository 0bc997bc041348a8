// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ir/spec.hpp>
#include <gshard/pass/reshard.hpp>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace gs = gshard;
using gs::move, gs::move_list, gs::op, gs::sharding;

namespace {

/// Every way in which a tensor may lie on a mesh of so many axes, in every order of the axes of a dim,
/// pending sums included.
constexpr void add_layouts(int axes, int a, const sharding& s, std::vector<sharding>& all) {
  if (a == axes) {
    all.push_back(s);
    return;
  }
  add_layouts(axes, a + 1, s, all);
  sharding t = s;
  t.partial = std::uint8_t(t.partial | (1u << a));
  add_layouts(axes, a + 1, t, all);
  for (int d = 0; d < s.rank; ++d)
    for (int at = 0; at <= s[d].size(); ++at) {
      sharding u = s;
      u[d].insert(at, a);
      add_layouts(axes, a + 1, u, all);
    }
}
constexpr std::vector<sharding> layouts(int rank, int axes) {
  std::vector<sharding> all;
  add_layouts(axes, 0, sharding::replicated(rank), all);
  return all;
}
/// check(from, to) for all pairs between which one can move: nothing turns a complete tensor into a pending
/// sum.
template <class Check>
constexpr bool for_all_pairs(int rank, int axes, Check check) {
  const std::vector<sharding> all = layouts(rank, axes);
  for (const sharding& from : all)
    for (const sharding& to : all)
      if (!(to.partial & ~from.partial) && !check(from, to)) return false;
  return true;
}
static_assert(layouts(2, 1).size() == 4 && layouts(2, 2).size() == 18);

/// A move that an executor can make: only what is there leaves, to where it is not yet.
constexpr bool is_possible(const sharding& s, const move& m) {
  const bool one = m.axis >= 0 && m.axes == 1u << m.axis;
  switch (m.kind) {
    case op::slice:
      return one && !((s.used() >> m.axis) & 1u) && !s.is_partial(m.axis) && m.to >= 0 && m.to < s.rank;
    case op::all_gather:
      return one && m.from >= 0 && !s[m.from].empty() && s[m.from].back() == m.axis;
    case op::all_to_all:
      return one && m.from >= 0 && m.to >= 0 && m.from != m.to && !s[m.from].empty() &&
             s[m.from].back() == m.axis;
    case op::reduce_scatter:
      return one && s.is_partial(m.axis) && m.to >= 0 && m.to < s.rank;
    case op::all_reduce:
      return m.axes != 0 && !(m.axes & ~s.partial);
    default:
      return false;
  }
}
/// The moves of plan_reshard, one after the other, end at the goal; none is taken where nothing is to be
/// done.
constexpr bool arrives(const sharding& from, const sharding& to) {
  sharding now = from;
  const move_list moves = gs::plan_reshard(from, to);
  for (const move& m : moves) {
    if (!is_possible(now, m)) return false;
    now = gs::after(now, m);
  }
  return now.same_layout(to) && (moves.count == 0) == from.same_layout(to);
}
static_assert(for_all_pairs(1, 2, arrives) && for_all_pairs(2, 1, arrives) && for_all_pairs(2, 2, arrives) &&
              for_all_pairs(3, 2, arrives));

constexpr int count(const move_list& moves, op kind) {
  int n = 0;
  for (const move& m : moves) n += m.kind == kind;
  return n;
}
constexpr std::uint32_t axes_of(const move_list& moves, op kind) {
  std::uint32_t mask = 0;
  for (const move& m : moves)
    if (m.kind == kind) mask |= m.axes;
  return mask;
}

/// Whether the goal can be had by bringing each axis straight to its place (slice, all_to_all,
/// reduce_scatter) and summing over the rest.
constexpr bool reachable_directly(const sharding& now, const sharding& goal) {
  if (now.same_layout(goal)) return true;
  for (int d = 0; d < now.rank; ++d) {
    if (now[d].size() >= goal[d].size() || !now[d].is_prefix_of(goal[d])) continue;
    const int a = goal[d][now[d].size()];
    for (const op kind : {op::slice, op::reduce_scatter, op::all_to_all}) {
      const move m{kind, a, now.dim_of(a), d, std::uint8_t(1u << a)};
      if (is_possible(now, m) && reachable_directly(gs::after(now, m), goal)) return true;
    }
  }
  const std::uint8_t rest = std::uint8_t(now.partial & ~goal.partial & ~goal.used());
  return rest && reachable_directly(gs::after(now, {op::all_reduce, -1, -1, -1, rest}), goal);
}
/// Then nothing is gathered, and no sum is made whole on all devices that the goal has cut.
static_assert(for_all_pairs(2, 2, [](const sharding& from, const sharding& to) {
  if (!reachable_directly(from, to)) return true;
  const move_list moves = gs::plan_reshard(from, to);
  return count(moves, op::all_gather) == 0 && !(axes_of(moves, op::all_reduce) & to.used());
}));
static_assert(for_all_pairs(3, 1, [](const sharding& from, const sharding& to) {
  // With one axis every layout is one move away.
  return gs::plan_reshard(from, to).count == (from.same_layout(to) ? 0 : 1);
}));

/// Bytes for the obvious way: sum what is pending, gather everything, cut as wanted.
constexpr std::int64_t bytes_by_gathering(const sharding& from, const sharding& to, const gs::value& v,
                                          const gs::extents& e) {
  move_list moves;
  sharding now = from;
  if (const std::uint8_t to_sum = std::uint8_t(from.partial & ~to.partial)) {
    moves.push_back({op::all_reduce, -1, -1, -1, to_sum});
    now = gs::after(now, {op::all_reduce, -1, -1, -1, to_sum});
  }
  for (int d = 0; d < now.rank; ++d)
    while (!now[d].empty()) {
      const move m = gs::detail::axis_move(op::all_gather, now[d].back(), d, -1);
      moves.push_back(m);
      now = gs::after(now, m);
    }
  return gs::bytes_sent(moves, v, from, e);
}
constexpr bool never_dearer(int x, int y) {
  gs::extents e;
  e.dims = {512, 1024};
  e.axes = {x, y};
  gs::value v;
  v.dims.push_back(0);
  v.dims.push_back(1);
  return for_all_pairs(2, 2, [&](const sharding& from, const sharding& to) {
    return gs::bytes_sent(gs::plan_reshard(from, to), v, from, e) <= bytes_by_gathering(from, to, v, e);
  });
}
static_assert(never_dearer(2, 2) && never_dearer(8, 2) && never_dearer(2, 8) && never_dearer(1, 4));

// Some by name.
constexpr gs::mesh_shape mesh = gs::mesh<gs::axis<"x">, gs::axis<"y">>::shape;
template <class Spec>
constexpr sharding lies = [] {
  gs::diagnostic problem;
  return gs::resolve(Spec::named, mesh, "", problem);
}();
template <class From, class To>
constexpr bool moves(std::initializer_list<op> kinds) {
  const move_list list = gs::plan_reshard(lies<From>, lies<To>);
  std::size_t i = 0;
  for (op k : kinds)
    if (i >= list.count || list.moves[i++].kind != k) return false;
  return i == list.count;
}
using gs::axes, gs::none, gs::P, gs::partial;
static_assert(moves<P<"x", none>, P<none, "x">>({op::all_to_all}));
static_assert(moves<P<axes<"x", "y">, none>, P<"x", "y">>({op::all_to_all}));
static_assert(moves<P<"x", none>, P<axes<"x", "y">, none>>({op::slice}));
static_assert(moves<P<none, none, partial<"x">>, P<none, none>>({op::all_reduce}));
static_assert(moves<P<none, none, partial<"x", "y">>, P<none, none>>({op::all_reduce}));
static_assert(moves<P<none, none, partial<"x">>, P<none, "x">>({op::reduce_scatter}));
// What is cut first makes the sum smaller.
static_assert(moves<P<none, none, partial<"y">>, P<"y", "x">>({op::slice, op::reduce_scatter}));
static_assert(moves<P<"x", none, partial<"y">>, P<none, axes<"x", "y">>>({op::all_to_all,
                                                                          op::reduce_scatter}));
// y has to go anyway; x can then move without a gather.
static_assert(moves<P<"x", "y">, P<none, "x">>({op::all_gather, op::all_to_all}));
// A sum that may stay pending does.
static_assert(moves<P<"x", none, partial<"y">>, P<none, "x", partial<"y">>>({op::all_to_all}));

}  // namespace

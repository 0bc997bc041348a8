// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/ir/spec.hpp>
#include <gshard/core/reshard/reshard.hpp>
#include <gshard/testing/all_shardings.hpp>

#include "../../soundness.hpp"

#include <array>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using gs::move, gs::move_list, gs::sharding;

namespace {

/// check(from, to) for all pairs with a possible move: a complete tensor cannot become a partial sum.
template <class Check>
constexpr bool for_all_pairs(int rank, int axes, Check check) {
  const std::vector<sharding> all = gshard::testing::all_shardings(rank, axes, true);
  for (const sharding& from : all)
    for (const sharding& to : all)
      if (!(to.partial & ~from.partial) && !check(from, to)) return false;
  return true;
}
static_assert(gshard::testing::all_shardings(2, 1, true).size() == 4 && gshard::testing::all_shardings(2, 2, true).size() == 18);

constexpr gs::value matrix(int rank) {
  gs::value v;
  for (int d = 0; d < rank; ++d) v.dims.push_back(d);
  return v;
}
constexpr gs::extents sizes(int x, int y, std::int64_t rows = 512, std::uint32_t known_axes = 0) {
  gs::extents e;
  e.dims = {rows, 1024, 256};
  e.axes = {x, y};
  e.known_axes = known_axes;
  return e;
}
constexpr move_list way(const sharding& from, const sharding& to, const gs::extents& e) {
  return gs::plan_reshard(matrix(from.rank), from, to, e);
}

/// The moves end at the goal, one after the other. There is none if nothing has to move.
constexpr bool arrives(const sharding& from, const sharding& to) {
  for (const std::uint32_t known : {0u, 3u}) {
    sharding now = from;
    const move_list moves = way(from, to, sizes(4, 4, 512, known));
    for (const move& m : moves) {
      if (!soundness::is_legal_move(m.kind, m.axes, now, m.to)) return false;
      now = m.to;
    }
    if (!now.same_layout(to) || (moves.count == 0) != from.same_layout(to)) return false;
  }
  return true;
}
static_assert(for_all_pairs(1, 2, arrives) && for_all_pairs(2, 1, arrives) && for_all_pairs(2, 2, arrives));

/// No axis that shards the goal is gathered or all-reduced.
static_assert(for_all_pairs(2, 2, [](const sharding& from, const sharding& to) {
  const move_list moves = way(from, to, sizes(8, 4));
  for (const move& m : moves)
    if ((m.kind == op::all_gather || m.kind == op::all_reduce) && (m.axes & to.used())) return false;
  return true;
}));
/// With one axis every layout is one move away.
static_assert(for_all_pairs(3, 1, [](const sharding& from, const sharding& to) {
  return way(from, to, sizes(8, 1)).count == (from.same_layout(to) ? 0 : 1);
}));
/// Between complete layouts a device receives only missing elements: the bytes of its new shard minus the part in its old one.
static_assert(for_all_pairs(2, 2, [](const sharding& from, const sharding& to) {
  const gs::extents e = sizes(8, 4);
  return from.partial || way(from, to, e).bytes <= gs::detail::bytes_lacking(matrix(2), from, to, e);
}));

// Some pairs by name.
constexpr gs::mesh_shape mesh = gs::mesh<gs::axis<"x">, gs::axis<"y">>::shape;
template <class Spec>
constexpr sharding lies = [] {
  gs::diagnostic problem;
  return gs::resolve(Spec::named, mesh, "", problem);
}();
template <class From, class To>
constexpr bool moves(std::initializer_list<gs::op_ref> kinds, std::uint32_t known_axes = 0) {
  const move_list list = way(lies<From>, lies<To>, sizes(4, 4, 16, known_axes));
  std::size_t i = 0;
  for (gs::op_ref k : kinds)
    if (i >= list.count || list.moves[i++].kind != k) return false;
  return i == list.count;
}
using gs::axes, gs::none, gs::P, gs::partial;
static_assert(moves<P<"x", none>, P<none, "x">>({op::all_to_all}));
static_assert(moves<P<axes<"x", "y">, none>, P<"x", "y">>({op::all_to_all}));
static_assert(moves<P<axes<"x", "y">, none>, P<none, axes<"x", "y">>>({op::all_to_all}));
static_assert(moves<P<"x", none>, P<axes<"x", "y">, none>>({op::slice}));
static_assert(moves<P<none, none>, P<"x", "y">>({op::slice}));
static_assert(moves<P<"x", "y">, P<none, none>>({op::all_gather}));
static_assert(moves<P<none, none, partial<"x">>, P<none, none>>({op::all_reduce}));
static_assert(moves<P<none, none, partial<"x", "y">>, P<none, none>>({op::all_reduce}));
static_assert(moves<P<none, none, partial<"x">>, P<none, "x">>({op::reduce_scatter}));
static_assert(moves<P<none, none, partial<"x", "y">>, P<"y", "x">>({op::reduce_scatter}));
// Slicing first makes the sum smaller.
static_assert(moves<P<none, none, partial<"y">>, P<"y", "x">>({op::slice, op::reduce_scatter}));
static_assert(moves<P<none, none, partial<"x">>, P<axes<"x", "y">, none>>({op::reduce_scatter}));
// Another order of a dim's axes: every device gets the shard of one other device.
static_assert(moves<P<axes<"x", "y">, none>, P<axes<"y", "x">, none>>({op::collective_permute}));
// The same for one axis instead of another, if they are known to have equal extents.
static_assert(moves<P<"x", none>, P<"y", none>>({op::all_to_all}) && moves<P<"x", "y">, P<"y", "x">>({op::all_to_all}));
static_assert(moves<P<"x", none>, P<"y", none>>({op::collective_permute}, 3) &&
              moves<P<"x", "y">, P<"y", "x">>({op::collective_permute}, 3));
// One axis is gathered and another one moves, in one exchange.
static_assert(moves<P<"x", "y">, P<none, "x">>({op::all_to_all}));
// A sum that may stay pending stays pending.
static_assert(moves<P<"x", none, partial<"y">>, P<none, "x", partial<"y">>>({op::all_to_all}));

// Devices that would all compute the same sum share the work if this is worth another start.
static_assert(way(lies<P<none, none, partial<"x">>>, lies<P<none, none>>, sizes(8, 8, 1 << 20)).count == 3 &&
              way(lies<P<none, none, partial<"x">>>, lies<P<none, none>>, sizes(8, 8, 16)).count == 1);

}  // namespace
